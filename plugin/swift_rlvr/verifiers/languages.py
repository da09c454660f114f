"""How "The answer is 7." is said in other languages than English and Chinese: data, one line a
language.
"""

from typing import NamedTuple


class Words(NamedTuple):
    """The words of a language, as parts of a regular expression.

    answer: "the answer". verb: what may stand between it and the answer; a colon, or the answer
    itself where it is a number, may always follow. or_: between two answers of which one is meant.
    after: what may stand behind the answer. not_: words, no expressions, right before an answer
    that is denied; denied: right behind it.
    """

    answer: str
    verb: str
    or_: str
    after: str = ""
    not_: str = ""
    denied: str = ""


LANGUAGES = {
    "ar": Words(
        "الإجابة(?: النهائية| الصحيحة)?|الجواب(?: النهائي| الصحيح)?", "هي|هو", "أو", not_="ليست|ليس"
    ),
    "bn": Words("উত্তর(?:টি)?", "হলো|হল|হচ্ছে|হবে", "বা|অথবা", denied="নয়|না"),
    "cs": Words("odpověď", "je|zní", "nebo", not_="není|nikoli"),
    "da, no": Words("svar(?:et)?", "er|blir|bliver", "eller", not_="ikke"),
    "de": Words("antwort|lösung", "ist|lautet|beträgt", "oder", not_="nicht|kein|keine|außer"),
    "el": Words("απάντηση", "είναι", "ή", not_="δεν είναι|όχι"),
    "es": Words("respuesta(?: final| correcta)?", "es", "o", not_="no es|no|excepto|menos"),
    "fa": Words(
        "(?:پاسخ|جواب)(?: نهایی| صحیح)?", "برابر است با|برابر با", "یا", " است", denied="نیست"
    ),
    "fi": Words("vastaus", "on", "tai", not_="ei ole|ei"),
    "fr": Words("réponse(?: finale| correcte)?", "est", "ou", not_="pas|sauf"),
    "he": Words("התשובה(?: הסופית| הנכונה)?", "היא|הוא", "או", not_="אינה|אינו|לא"),
    "hi": Words("उत्तर|जवाब", "है|होगा", "या", " है| होगा| हैं", denied="नहीं"),
    "hu": Words("válasz", "az|a", "vagy", not_="nem"),
    "id": Words(
        "jawaban(?:nya)?(?: akhir(?:nya)?| yang benar)?",
        "adalah|ialah",
        "atau",
        not_="bukan|selain",
    ),
    "it": Words("risposta(?: finale| corretta)?", "è", "o", not_="non è|non|tranne"),
    "ja": Words(
        "正解|答え|解答",
        "は",
        "または|か",
        "です|である|となります|になります",
        denied="ではない|ではありません|じゃない",
    ),
    "ko": Words(
        "정답|답", "은|는", "또는|이나", "입니다|이다|이에요|예요", denied="가 아니|이 아니"
    ),
    "nl": Words("antwoord", "is|luidt", "of", not_="niet|geen|behalve"),
    "pl": Words("odpowiedź", "to|jest|brzmi", "lub|albo", not_="nie jest|nie|oprócz"),
    "pt": Words("resposta(?: final| correta)?", "é", "ou", not_="não é|não|exceto"),
    "ro": Words("răspunsul(?: final| corect)?", "este|e", "sau", not_="nu este|nu e|nu"),
    "ru": Words("ответ", "это|равен|—|–|-", "или", not_="не|кроме"),
    "sv": Words("svar(?:et)?", "är|blir", "eller", not_="inte|utom"),
    "sw": Words("jibu(?: sahihi)?", "ni", "au", not_="si"),
    "te": Words("సమాధానం|జవాబు", "అంటే", "లేదా", denied="కాదు"),
    "th": Words("คำตอบ(?:ที่ถูกต้อง|สุดท้าย)?", "คือ|เป็น", "หรือ", not_="ไม่ใช่"),
    "tr": Words(
        "cevap|yanıt", "olarak", "veya|ya da", "['’]?[dt][ıiuü]r| olur| olacaktır", denied="değil"
    ),
    "uk": Words("відповідь", "це|дорівнює|—|–|-", "або", not_="не|крім"),
    "vi": Words(
        "(?:câu trả lời|đáp án|đáp số)(?: cuối cùng| đúng)?",
        "là",
        "hoặc",
        not_="không phải là|không phải|không",
    ),
}
