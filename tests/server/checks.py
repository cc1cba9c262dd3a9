"""Named checks: functions that raise when something is not as it should be, run one after the other and counted."""
import os
import time
import traceback


class Checks:
    """A list of checks. `@checks.add("name")` registers one; each takes the context that `run` is given."""

    def __init__(self):
        self.entries = []

    def add(self, name, only=None):
        """`only` restricts a check to one kind of server."""
        def register(function):
            self.entries.append((name, only, function))
            return function
        return register

    def extend(self, others):
        self.entries.extend(others.entries)

    def without(self, part):
        """The checks that do not have `part` in their name."""
        others = Checks()
        others.entries = [entry for entry in self.entries if part not in entry[0]]
        return others

    def run(self, context, part=""):
        """Runs what has `part` in its name and fits the context's server. Gives back how many passed and how many failed."""
        passed = failed = 0
        for name, only, function in self.entries:
            if part not in name or only not in (None, context.kind):
                continue
            started = time.monotonic()
            try:
                function(context)
                passed += 1
            except Exception as error:
                failed += 1
                print(f"FAILED {name} ({place(error)}): {type(error).__name__}: {error}", flush=True)
            if context.verbose:
                print(f"{time.monotonic() - started:6.2f} s  {name}", flush=True)
        return passed, failed


def place(error):
    """The innermost line of a check that an error went through."""
    own = os.path.dirname(os.path.abspath(__file__))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    within = [frame for frame in frames if frame.filename.startswith(own) and ".peers" not in frame.filename]
    return f"{os.path.basename(within[-1].filename)}, line {within[-1].lineno}" if within else "outside of any check"


def same(got, expected, what=""):
    if got != expected:
        raise AssertionError(f"{what}: {got!r}, not {expected!r}" if what else f"{got!r}, not {expected!r}")


def holds(condition, detail=""):
    if not condition:
        raise AssertionError(detail)


def refused(call, *signs):
    """The message of the error with which a call must end; every sign must be in it, or one of a tuple of them."""
    try:
        answer = call()
    except Exception as error:
        text = f"{getattr(error, 'status', lambda: '')()} {error}"
        for sign in signs:
            options = sign if isinstance(sign, tuple) else (sign,)
            if not any(option in text for option in options):
                raise AssertionError(f"refused, but without {sign!r}: {text}") from error
        return text
    raise AssertionError(f"not refused: {answer}")
