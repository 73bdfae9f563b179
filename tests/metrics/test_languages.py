"""Languages told apart by script, frequent words and letters."""

from __future__ import annotations

import pytest

from tinyeval.metrics.languages import CODES, is_language

SAMPLES = {
    "en": (
        "Artificial intelligence is changing how people work and learn. "
        "I would like to visit the museum tomorrow morning, weather permitting."
    ),
    "de": (
        "Künstliche Intelligenz verändert, wie Menschen arbeiten und lernen. "
        "Ich möchte morgen früh das Museum besuchen, wenn das Wetter gut ist."
    ),
    "fr": (
        "L'intelligence artificielle change la façon dont les gens travaillent. "
        "Je voudrais visiter le musée demain matin si le temps le permet."
    ),
    "es": (
        "La inteligencia artificial cambia la forma en que la gente trabaja y aprende. "
        "Me gustaría visitar el museo mañana por la mañana si hace buen tiempo."
    ),
    "pt": (
        "A inteligência artificial muda a forma como as pessoas trabalham e aprendem. "
        "Eu gostaria de visitar o museu amanhã de manhã, se o tempo permitir."
    ),
    "it": (
        "L'intelligenza artificiale cambia il modo in cui le persone lavorano e imparano. "
        "Vorrei visitare il museo domani mattina, se il tempo lo permette."
    ),
    "nl": (
        "Kunstmatige intelligentie verandert hoe mensen werken en leren. "
        "Ik wil morgenochtend het museum bezoeken als het weer goed is."
    ),
    "sv": (
        "Artificiell intelligens förändrar hur människor arbetar och lär sig. "
        "Jag vill besöka museet i morgon bitti om vädret är bra."
    ),
    "pl": (
        "Sztuczna inteligencja zmienia sposób, w jaki ludzie pracują i uczą się. "
        "Chciałbym jutro rano odwiedzić muzeum, jeśli pogoda dopisze."
    ),
    "fi": (
        "Tekoäly muuttaa tapaa, jolla ihmiset työskentelevät ja oppivat. "
        "Haluaisin käydä museossa huomenna aamulla, jos sää on hyvä."
    ),
    "vi": (
        "Trí tuệ nhân tạo đang thay đổi cách con người làm việc và học tập. "
        "Tôi muốn đến thăm bảo tàng vào sáng mai nếu thời tiết đẹp."
    ),
    "sw": (
        "Akili bandia inabadilisha jinsi watu wanavyofanya kazi na kujifunza. "
        "Ningependa kutembelea makumbusho kesho asubuhi kama hali ya hewa ni nzuri."
    ),
    "tr": (
        "Yapay zeka insanların çalışma ve öğrenme biçimini değiştiriyor. "
        "Hava güzel olursa yarın sabah müzeyi ziyaret etmek istiyorum."
    ),
    "id": (
        "Kecerdasan buatan mengubah cara orang bekerja dan belajar. "
        "Saya ingin mengunjungi museum besok pagi jika cuaca baik."
    ),
    "ru": (
        "Искусственный интеллект меняет то, как люди работают и учатся. "
        "Я хотел бы посетить музей завтра утром, если погода будет хорошей."
    ),
    "uk": (
        "Штучний інтелект змінює те, як люди працюють і навчаються. "
        "Я хотів би відвідати музей завтра вранці, якщо погода буде гарною."
    ),
    "bg": (
        "Изкуственият интелект променя начина, по който хората работят и учат. "
        "Искам да посетя музея утре сутрин, ако времето е хубаво."
    ),
    "ar": ("الذكاء الاصطناعي يغير طريقة عمل الناس وتعلمهم. أود زيارة المتحف صباح الغد إذا كان الطقس جيدا."),
    "fa": ("هوش مصنوعی شیوه کار و یادگیری مردم را تغییر می دهد. دوست دارم فردا صبح اگر هوا خوب باشد به موزه بروم."),
    "ur": (
        "مصنوعی ذہانت لوگوں کے کام کرنے اور سیکھنے کا طریقہ بدل رہی ہے۔ "
        "میں کل صبح عجائب گھر جانا چاہتا ہوں اگر موسم اچھا ہو۔"
    ),
    "hi": (
        "कृत्रिम बुद्धिमत्ता लोगों के काम करने और सीखने के तरीके को बदल रही है। मैं कल सुबह संग्रहालय जाना चाहता हूँ यदि मौसम अच्छा हो।"
    ),
    "mr": (
        "कृत्रिम बुद्धिमत्ता लोकांची काम करण्याची आणि शिकण्याची पद्धत बदलत आहे. "
        "हवामान चांगले असेल तर मला उद्या सकाळी संग्रहालयात जायचे आहे."
    ),
    "ne": (
        "कृत्रिम बुद्धिमत्ताले मानिसहरूको काम गर्ने र सिक्ने तरिका परिवर्तन गर्दैछ। मौसम राम्रो भयो भने म भोलि बिहान संग्रहालय जान चाहन्छु।"
    ),
    "zh": ("人工智能正在改变人们工作和学习的方式。 如果天气好,我明天早上想去博物馆。"),
    "ja": ("人工知能は人々の働き方と学び方を変えています。 天気がよければ、明日の朝、博物館に行きたいです。"),
    "ko": ("인공지능은 사람들이 일하고 배우는 방식을 바꾸고 있습니다. 날씨가 좋으면 내일 아침 박물관에 가고 싶습니다."),
    "th": "ปัญญาประดิษฐ์กำลังเปลี่ยนวิธีการทำงาน",
    "el": "Η τεχνητή νοημοσύνη αλλάζει τον τρόπο που δουλεύουμε.",
    "he": "הבינה המלאכותית משנה את הדרך שבה אנשים עובדים.",
    "bn": "কৃত্রিম বুদ্ধিমত্তা মানুষের কাজ করার পদ্ধতি বদলে দিচ্ছে।",
    "ta": "செயற்கை நுண்ணறிவு மக்கள் வேலை செய்யும் முறையை மாற்றுகிறது.",
    "te": "కృత్రిమ మేధస్సు ప్రజలు పనిచేసే విధానాన్ని మారుస్తోంది.",
    "kn": "ಕೃತಕ ಬುದ್ಧಿಮತ್ತೆ ಜನರ ಕೆಲಸದ ವಿಧಾನವನ್ನು ಬದಲಾಯಿಸುತ್ತಿದೆ.",
    "ml": "നിർമ്മിത ബുദ്ധി ആളുകളുടെ ജോലി രീതി മാറ്റുന്നു.",
    "gu": "કૃત્રિમ બુદ્ધિ લોકોની કામ કરવાની રીત બદલી રહી છે.",
    "pa": "ਨਕਲੀ ਬੁੱਧੀ ਲੋਕਾਂ ਦੇ ਕੰਮ ਕਰਨ ਦਾ ਤਰੀਕਾ ਬਦਲ ਰਹੀ ਹੈ।",
}
SAME = {"zh-cn", "zh-tw"}


@pytest.mark.parametrize("code", sorted(SAMPLES))
def test_a_language_is_told_from_all_others(code: str) -> None:
    found = {c for c in CODES if is_language(SAMPLES[code], c)}
    assert found == ({code} | SAME if code == "zh" else {code})


def test_every_language_has_a_sample() -> None:
    assert set(SAMPLES) == CODES - SAME


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("", "en", True),  # nothing speaks against it
        ("3.14 + 1", "zh", True),
        ("\ud800", "fr", True),
        ("我在 New York 的 Columbia University 学习计算机", "zh", True),
        ("I study in 厦门, at 厦门大学, which is a university", "en", True),
        ("I study in 厦门, at 厦门大学, which is a university", "zh", False),
        ("日本語の「の」是助词，表示所属，用在名词之间，相当于汉语的的字", "zh", True),
        ("これは本です", "zh", False),
        ("コーヒー", "ja", True),
        ("THE END OF THE DAY", "en", True),
        ("Bonjour", "en", True),  # no frequent word of any language: can't be told
        ("Bonjour", "ru", False),
    ],
)
def test_mixed_and_short_texts(text: str, code: str, expected: bool) -> None:
    assert is_language(text, code) is expected
