"""Who is asked: dialects of inference servers behind one protocol, their tokenizers, truncation and capabilities."""
