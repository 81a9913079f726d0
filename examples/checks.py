"""What the examples demand of their numbers: each check is printed as it is made, and the program fails if one does not hold."""


class Checks:
    """Called with whether something holds, and what it is."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def __call__(self, holds: bool, what: str) -> None:
        print(f"  [{'ok' if holds else 'FAILED'}] {what}")
        if not holds:
            self.failed.append(what)

    def finish(self) -> int:
        """Say how it ended; what the program exits with."""
        print("\nAll checks hold." if not self.failed else f"\n{len(self.failed)} of the checks above failed.")
        return bool(self.failed)
