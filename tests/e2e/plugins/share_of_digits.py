"""A reward in which the completions of any model differ, so that the first step already learns."""

from swift.rewards import ORM, orms


class ShareOfDigits(ORM):
    def __call__(self, completions, **columns):
        shares = []
        for text in completions:
            digits = sum(letter.isdigit() for letter in text)
            shares.append(digits / max(1, len(text)))
        return shares


orms["external_share_of_digits"] = ShareOfDigits
