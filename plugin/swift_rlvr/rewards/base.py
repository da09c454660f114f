"""What every reward has in common: both completion shapes, columns checked by name, one grade for each completion."""

from swift_rlvr.answers import completion_text


class Reward:
    """A reward that ms-swift and TRL can call: ``reward(completions, **columns) -> list[float | None]``.

    A subclass names the dataset columns it needs in `columns` and implements `grade`, which gets the completion's text
    (None where there is none) and that row's columns, and returns the reward, or None where the row cannot be graded.
    `grade` must not raise because of what a policy wrote.

    >>> class Shorter(Reward):
    ...     columns = ("limit",)
    ...     def grade(self, text, limit):
    ...         return float(text is not None and len(text) < limit)
    >>> Shorter()(["abc", [{"role": "assistant", "content": "abcdef"}]], limit=[5, 5])
    [1.0, 0.0]
    """

    columns: tuple[str, ...] = ()

    def __init__(self, args: object = None):
        """Take what ms-swift hands to every reward, its training arguments; they are not kept: they do not pickle."""

    @property
    def __name__(self) -> str:
        """TRL logs a reward under this name; ms-swift takes the class's, which is the same."""
        return type(self).__name__

    def grade(self, text: str | None, *row: object) -> float | None:
        raise NotImplementedError(f"{type(self).__name__} does not implement grade")

    def grade_all(self, texts: list[str | None], *columns: list) -> list[float | None]:
        """Grade each text with its row; to be overridden where many at once are cheaper than one by one."""
        return list(map(self.grade, texts, *columns))

    def __call__(self, completions: list, **columns: list) -> list[float | None]:
        """Grade each completion, in order. Columns that are not needed are ignored.

        Raises:
            ValueError: where a column is missing or is not as long as completions; this is a mistake in the dataset or
                its preprocessor, and training on would only hide it.
        """
        for name in self.columns:
            if name not in columns:
                raise ValueError(
                    f"{type(self).__name__} needs the dataset column {name!r}; "
                    f"the columns present are {', '.join(map(repr, sorted(columns))) or 'none'}"
                )
            if len(columns[name]) != len(completions):
                raise ValueError(
                    f"{type(self).__name__}: column {name!r} must hold one value per completion: "
                    f"it holds {len(columns[name])} for {len(completions)} completions"
                )
        texts = [text if type(text) is str else completion_text(text) for text in completions]
        return self.grade_all(texts, *(columns[name] for name in self.columns))
