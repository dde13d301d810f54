"""What is new in the lists that a server says of one file."""

from __future__ import annotations

from tui.tools.lsp.file_problems import FileProblems
from tui.tools.lsp.pace import NEW_PATIENCE_S, NEW_QUIET_S, Pace
from tui.tools.lsp.problems import Problem


def at(line: int, text: str, message: str = "no") -> Problem:
    return Problem("a.py", line, 1, "error", message, text=text)


def begun(text: str, *old: Problem, whole: bool = True) -> FileProblems:
    problems = FileProblems()
    problems.show(text)
    problems.current = list(old)
    problems.begin(whole=whole)
    return problems


def told(problems: FileProblems, text: str, *said: Problem) -> list[Problem]:
    problems.show(text)
    problems.current = list(said)
    problems.weigh()
    return problems.take()


def test_old_ones_that_a_mistake_hid_are_not_new_when_it_is_gone() -> None:
    old, mistake = at(1, "old"), at(2, "(", "syntax")
    problems = begun("old\n", old)
    assert told(problems, "old\n(\n", mistake) == [mistake]
    assert told(problems, "old\n( \n", mistake) == []
    assert told(problems, "old\n", old) == []


def test_one_that_was_mended_and_is_back_is_new() -> None:
    old = at(1, "use()", "undefined")
    problems = begun("use()\n", old)
    assert told(problems, "use()\ndef use()\n") == []
    assert told(problems, "use()\n", old) == [old]


def test_a_later_list_of_the_same_text_does_not_make_old_ones_new() -> None:
    old = at(1, "old")
    problems = begun("old\n", old)
    assert told(problems, "# moved\nold\n") == []
    problems.current = [at(2, "old")]
    problems.weigh()
    assert problems.take() == []


def test_where_nothing_is_known_of_before_only_lines_of_the_edits_count() -> None:
    problems = begun("old\n", whole=False)
    new = at(2, "new")
    assert told(problems, "old\nnew\n", at(1, "old"), new) == [new]
    assert told(problems, "old\nnew\nfine\n", at(1, "old"), new) == []


def test_what_was_not_said_and_is_mended_by_the_next_edit_is_never_said() -> None:
    problems = begun("fine\n")
    problems.show("fine\nbad\n")
    problems.current = [at(2, "bad")]
    problems.weigh()
    assert told(problems, "fine\n") == []


def test_what_was_not_said_is_said_after_the_next_edit() -> None:
    problems, bad = begun("fine\n"), at(2, "bad")
    problems.show("fine\nbad\n")
    problems.current = [bad]
    problems.weigh()
    assert told(problems, "fine\nbad\nfine\n", bad) == [bad]


def test_a_message_that_names_a_line_is_the_same_when_the_line_moves() -> None:
    problems = begun("old\n", at(1, "old", "see line 7"))
    assert told(problems, "#\nold\n", at(2, "old", "see line 8")) == []


def test_a_pace_is_learned_and_bounded() -> None:
    pace = Pace()
    assert (pace.quiet_s, pace.patience_s) == (NEW_QUIET_S, NEW_PATIENCE_S)
    pace.note_first(9.0)
    pace.known = True
    assert (pace.quiet_s, pace.patience_s) == (0.1, 1.0)
    pace.note_pause(0.25)
    pace.note_pause(60.0)
    pace.note_first(0.5)
    assert (pace.quiet_s, pace.patience_s) == (0.5, 2.0)
    pace.note_pause(1.9)
    pace.note_first(20.0)
    assert (pace.quiet_s, pace.patience_s) == (2.0, 10.0)
