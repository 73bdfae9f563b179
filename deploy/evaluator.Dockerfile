# The evaluator alone: no model, no GPU, no torch. Built from the root of the project by `docker compose build evaluator`.
# To pin by digest: --build-arg PYTHON=3.12.12-slim-bookworm@sha256:...
ARG PYTHON=3.12.12-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY evaluator/tinyeval evaluator/tinyeval
COPY deploy/local/tinyserve deploy/local/tinyserve
COPY tasks tasks
RUN python -m venv /opt/tinyeval \
    && /opt/tinyeval/bin/pip install --no-cache-dir --disable-pip-version-check .

FROM python:${PYTHON}
COPY --from=build /opt/tinyeval /opt/tinyeval
# Any user may be chosen at run time, so the cache is open to all, like /tmp.
RUN useradd --uid 1000 --create-home evaluator \
    && mkdir --mode=1777 /cache \
    && mkdir /evaluation && chown evaluator:evaluator /evaluation
ENV PATH=/opt/tinyeval/bin:$PATH \
    HF_HOME=/cache \
    PYTHONUNBUFFERED=1
USER evaluator
WORKDIR /evaluation
# An interrupted run says how to resume; Docker's default signal would not let it.
STOPSIGNAL SIGINT
ENTRYPOINT ["tinyeval"]
CMD ["--help"]
