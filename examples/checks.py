"""Checks of the results of the examples: each check is printed, and the program fails if one of them does not hold."""


class Checks:
    """Function of a condition and its description that prints each check."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def __call__(self, holds: bool, what: str) -> None:
        print(f"  [{'ok' if holds else 'FAILED'}] {what}")
        if not holds:
            self.failed.append(what)

    def finish(self) -> int:
        """Print a summary, and return the exit status of the program."""
        print("\nAll checks hold." if not self.failed else f"\n{len(self.failed)} of the checks above failed.")
        return bool(self.failed)
