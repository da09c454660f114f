"""How "The answer is 7." is said in other languages than English and Chinese: data, one line a
language.
"""

from typing import NamedTuple


class Words(NamedTuple):
    """The words of a language, as parts of a regular expression.

    answer: "the answer". verb: what may stand between it and the answer; a colon, or the answer
    itself where it is a number, may always follow. or_: between two answers of which one is meant.
    after: what may stand behind the answer.
    """

    answer: str
    verb: str
    or_: str
    after: str = ""


LANGUAGES = {
    "ar": Words("الإجابة(?: النهائية| الصحيحة)?|الجواب(?: النهائي| الصحيح)?", "هي|هو", "أو"),
    "bn": Words("উত্তর(?:টি)?", "হলো|হল|হচ্ছে|হবে", "বা|অথবা"),
    "cs": Words("odpověď", "je|zní", "nebo"),
    "da, no": Words("svar(?:et)?", "er|blir|bliver", "eller"),
    "de": Words("antwort|lösung", "ist|lautet|beträgt", "oder"),
    "el": Words("απάντηση", "είναι", "ή"),
    "es": Words("respuesta(?: final| correcta)?", "es", "o"),
    "fa": Words("(?:پاسخ|جواب)(?: نهایی| صحیح)?", "برابر است با|برابر با", "یا", " است"),
    "fi": Words("vastaus", "on", "tai"),
    "fr": Words("réponse(?: finale| correcte)?", "est", "ou"),
    "he": Words("התשובה(?: הסופית| הנכונה)?", "היא|הוא", "או"),
    "hi": Words("उत्तर|जवाब", "है|होगा", "या", " है| होगा| हैं"),
    "hu": Words("válasz", "az|a", "vagy"),
    "id": Words("jawaban(?:nya)?(?: akhir(?:nya)?| yang benar)?", "adalah|ialah", "atau"),
    "it": Words("risposta(?: finale| corretta)?", "è", "o"),
    "ja": Words("正解|答え|解答", "は", "または|か", "です|である|となります|になります"),
    "ko": Words("정답|답", "은|는", "또는|이나", "입니다|이다|이에요|예요"),
    "nl": Words("antwoord", "is|luidt", "of"),
    "pl": Words("odpowiedź", "to|jest|brzmi", "lub|albo"),
    "pt": Words("resposta(?: final| correta)?", "é", "ou"),
    "ro": Words("răspunsul(?: final| corect)?", "este|e", "sau"),
    "ru": Words("ответ", "это|равен|—|–|-", "или"),
    "sv": Words("svar(?:et)?", "är|blir", "eller"),
    "sw": Words("jibu(?: sahihi)?", "ni", "au"),
    "te": Words("సమాధానం|జవాబు", "అంటే", "లేదా"),
    "th": Words("คำตอบ(?:ที่ถูกต้อง|สุดท้าย)?", "คือ|เป็น", "หรือ"),
    "tr": Words("cevap|yanıt", "olarak", "veya|ya da", "['’]?[dt][ıiuü]r| olur| olacaktır"),
    "uk": Words("відповідь", "це|дорівнює|—|–|-", "або"),
    "vi": Words("(?:câu trả lời|đáp án|đáp số)(?: cuối cùng| đúng)?", "là", "hoặc"),
}
