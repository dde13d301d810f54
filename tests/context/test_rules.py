"""Every rule by its number: what breaks it, what the API says, and what the repair makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.context.pictures import gif, image, jpeg, png, webp
from tests.context.wild import Json, assistant, call, result, text, thinking, user
from tui.context.repair import CONTINUE, INTERRUPTED, ORPHANED, repair
from tui.context.rules.media import image_info_of
from tui.context.validate import Tail, Violation, check

MARK = {"cache_control": {"type": "ephemeral"}}
R2 = result("a", [text(INTERRUPTED)], is_error=True)


def codes(found: list[Violation]) -> set[str]:
    return {violation.code for violation in found}


def mended(code: str, said: list[Any], says: str, **options: Any) -> list[Any]:
    """Assert that `said` breaks rule `code` in the API's words; the repaired messages."""
    broken = check(said, **options)
    assert any(v.code == code and says in v.text for v in broken), broken
    repaired, findings = repair(said, **options)
    assert check(repaired, **options) == []
    assert code in {finding.code for finding in findings}
    return list(repaired)


def turn(*blocks: Json) -> list[Any]:
    """An answer of these blocks between two prompts."""
    return [user("go"), assistant(*blocks), user("next")]


def answered(block: Json) -> list[Any]:
    """A call and its result, in a valid conversation."""
    return [user("go"), assistant(call("a")), user(block)]


def test_B01_R2_orphan_call_gets_the_literal_result_first_in_the_next_message() -> None:
    said = turn("look", call("a"))
    repaired = mended("B01", said, "`tool_use` ids were found without `tool_result` blocks")
    assert repaired == [user("go"), assistant("look", call("a")), user(R2, "next")]


def test_R2_R3_the_literal_text_and_an_error() -> None:
    assert INTERRUPTED == "Session was interrupted before tool execution completed"
    repaired, _ = repair(turn(call("a")))
    block = repaired[2]["content"][0]
    assert block["is_error"] is True
    assert block["content"] == [text(INTERRUPTED)]


def test_B01_orphan_at_the_end_gets_a_message_of_its_own() -> None:
    said = [user("go"), assistant(call("a"))]
    assert mended("B01", said, "immediately after: a.")[2:] == [user(R2)]


def test_B01_only_the_missing_result_of_two_is_made_up() -> None:
    said = [user("go"), assistant(call("a"), call("b")), user(result("b", "out"))]
    repaired = mended("B01", said, "immediately after: a.")
    assert repaired[2] == user(R2, result("b", "out"))


def test_B02_result_without_a_call_stays_as_text() -> None:
    said = [user("go", result("x", "what it said")), assistant("ok"), user("next")]
    repaired = mended("B02", said, "unexpected `tool_use_id` found in `tool_result` blocks: x")
    assert repaired[0] == user("go", ORPHANED, "what it said")


@pytest.mark.parametrize("nothing", ["", [], INTERRUPTED])
def test_B02_result_without_a_call_that_says_nothing_goes(nothing: Json) -> None:
    said = [user("go", result("x", nothing)), assistant("ok"), user("next")]
    assert mended("B02", said, "unexpected")[0] == user("go")


def test_B03_copies_of_a_call_are_merged() -> None:
    said = [user("go"), assistant(call("a"), call("a")), user(result("a"))]
    repaired = mended("B03", said, "`tool_use` ids must be unique")
    assert repaired == answered(result("a"))


def test_B03_a_different_call_with_the_same_id_is_renamed_with_its_result() -> None:
    said = [
        user("go"), assistant(call("a", "t", {"n": 1})), user(result("a", "one")),
        assistant(call("a", "t", {"n": 2})), user(result("a", "two")),
    ]  # fmt: skip
    repaired = mended("B03", said, "must be unique")
    second = repaired[3]["content"][0]["id"]
    assert second != "a"
    assert repaired[4] == user(result(second, "two"))
    assert repaired[:3] == said[:3]


def test_B03_the_same_call_made_twice_keeps_both_results() -> None:
    said = [
        user("go"), assistant(call("a")), user(result("a", "red")),
        assistant(call("a")), user(result("a", "green")),
    ]  # fmt: skip
    repaired = mended("B03", said, "must be unique")
    assert [m["content"][0]["content"] for m in repaired[2::2]] == ["red", "green"]


def test_B03_different_calls_with_one_id_in_one_message_keep_their_own_results() -> None:
    said = [
        user("go"), assistant(call("a", "t", {"n": 1}), call("a", "t", {"n": 2})),
        user(result("a", "one"), result("a", "two")),
    ]  # fmt: skip
    repaired = mended("B03", said, "must be unique")
    ids = [block["id"] for block in repaired[1]["content"]]
    assert repaired[2] == user(result(ids[0], "one"), result(ids[1], "two"))


def test_B04_the_first_result_that_is_not_synthetic_stays() -> None:
    said = [user("go"), assistant(call("a")), user(R2, result("a", "real"), result("a", "late"))]
    repaired = mended("B04", said, "Found multiple `tool_result` blocks with id: a")
    assert repaired == answered(result("a", "real"))


def test_B05_results_come_first() -> None:
    said = [user("go"), assistant(call("a")), user("and this", result("a"))]
    repaired = mended("B05", said, "without `tool_result` blocks immediately after")
    assert repaired[2] == user(result("a"), "and this")


def test_B06_results_come_in_the_order_of_the_calls() -> None:
    said = [user("go"), assistant(call("a"), call("b")), user(result("b", "2"), result("a", "1"))]
    repaired = mended("B06", said, "in the order of their calls")
    assert repaired[2] == user(result("a", "1"), result("b", "2"))


def test_B06_a_displaced_result_is_fetched_back() -> None:
    said = [
        user("go"), assistant(call("a")), user("hm"), assistant("what?"), user(result("a", "late"))
    ]  # fmt: skip
    repaired, findings = repair(said)
    assert check(repaired) == []
    assert repaired[2] == user(result("a", "late"), "hm")
    assert "B06" in {f.code for f in findings}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"path": "a"}', {"path": "a"}),
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
        ("not json", {"raw_input": "not json"}),
        ("[1]", {"raw_input": "[1]"}),
        (["x"], {"raw_input": ["x"]}),
        (None, {}),
        ([], {}),
        ("", {}),
        ("null", {}),
    ],
)
def test_B07_R1_input_becomes_an_object(given: Json, expected: Json) -> None:
    block = call("a") | {"input": given}
    said = [user("go"), assistant(block), user(result("a"))]
    repaired = mended("B07", said, "tool_use.input: Input should be a valid dictionary")
    assert repaired[1] == assistant(call("a", input_=expected))


@pytest.mark.parametrize("bad", ["call.1!", "", "ä", "a\n", None, 7])
def test_B08_bad_ids_are_rewritten_alike_on_both_sides(bad: Json) -> None:
    said = [user("go"), assistant(call(bad)), user(result(bad, "out"))]
    repaired = mended("B08", said, "String should match pattern '^[a-zA-Z0-9_-]+$'")
    assert repaired[2]["content"][0]["tool_use_id"] == repaired[1]["content"][0]["id"]
    assert repaired[2]["content"][0]["content"] == "out"


def test_B08_rewritten_ids_stay_apart() -> None:
    said = [
        user("go"),
        assistant(call("a.b"), call("a:b"), call("a_b")),
        user(result("a.b", "1"), result("a:b", "2"), result("a_b", "3")),
    ]
    repaired = mended("B08", said, "pattern")
    ids = [block["id"] for block in repaired[1]["content"]]
    assert len(set(ids)) == 3
    assert ids[2] == "a_b"
    assert [b["content"] for b in repaired[2]["content"]] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "says", "made"),
    [
        ("x" * 201, "at most 200", "x" * 200),
        ("functions.read file", "match pattern", "functions_read_file"),
    ],
)
def test_B09_names_are_made_valid(name: str, says: str, made: str) -> None:
    said = [user("go"), assistant(call("a", name)), user(result("a"))]
    assert mended("B09", said, says)[1]["content"][0]["name"] == made


def test_B09_a_call_without_a_name_goes_with_its_result() -> None:
    said = [user("go"), assistant("hm", call("a", "")), user(result("a"), "next")]
    repaired = mended("B09", said, "at least 1 character")
    assert repaired == [user("go"), assistant("hm"), user("next")]


@pytest.mark.parametrize(
    ("code", "block", "says"),
    [
        ("B10", text(""), "text content blocks must be non-empty"),
        ("B11", text(" \n"), "text content blocks must contain non-whitespace text"),
        ("B12", text("") | MARK, "cache_control cannot be set for empty text blocks"),
    ],
)
def test_B10_B11_B12_empty_texts_go(code: str, block: Json, says: str) -> None:
    assert mended(code, turn(block, "said"), says) == turn("said")
    assert mended(code, turn(block), says) == [user("go", "next")]


def test_B13_empty_messages_go_or_keep_the_turn() -> None:
    words = "all messages must have non-empty content"
    assert mended("B13", [user("go"), assistant(), user("next")], words) == [user("go", "next")]
    said = [user("go"), assistant("one"), user(), assistant("two"), user("next")]
    assert mended("B13", said, words)[2] == user(CONTINUE)


def test_B14_no_white_space_at_the_end_of_a_prefill() -> None:
    said = [user("go"), assistant("and so \n")]
    repaired = mended("B14", said, "cannot end with trailing whitespace", tail="prefill")
    assert repaired == [user("go"), assistant("and so")]


def test_B15_a_request_ends_with_the_user_and_the_answer_stays() -> None:
    said = [user("go"), assistant("done")]
    assert mended("B15", said, "must end with a user message") == [*said, user(CONTINUE)]
    assert check(said, tail="open") == []


def test_B16_thinking_does_not_end_an_answer() -> None:
    said = turn("so", thinking())
    assert mended("B16", said, "The final block in an assistant message") == turn("so")
    assert mended("B16", turn(thinking()), "cannot be `thinking`") == [user("go", "next")]


def test_B16_fragments_of_one_answer_are_joined_before() -> None:
    said = [
        user("go"), assistant(thinking()), assistant("so"), assistant(call("a")),
        assistant(call("b")), user(result("a")), user(result("b")),
    ]  # fmt: skip
    repaired, _ = repair(said)
    assert repaired == [
        user("go"), assistant(thinking(), "so", call("a"), call("b")),
        user(result("a"), result("b")),
    ]  # fmt: skip


@pytest.mark.parametrize("signature", ["", None, 5])
def test_B17_B19_unsigned_thinking_goes_with_all_thinking_of_its_answer(signature: Json) -> None:
    said = turn(thinking() | {"signature": signature}, thinking("good"), "so")
    assert mended("B17", said, "thinking.signature: Field required") == turn("so")


def test_B18_thinking_without_text_goes() -> None:
    said = turn({"type": "thinking", "signature": "s"}, "so")
    assert mended("B18", said, "each thinking block must contain thinking") == turn("so")
    omitted = turn({"type": "thinking", "thinking": "", "signature": "s"}, "so")
    assert check(omitted) == []


def test_B20_only_fixed_thinking_needs_the_answer_to_begin_with_it() -> None:
    said = answered(result("a"))
    found = check(said, thinking={"type": "enabled", "budget_tokens": 2000})
    assert codes(found) == {"B20"}
    assert "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in found[0].text
    assert check(said, thinking={"type": "adaptive"}) == []


def test_B21_thinking_goes_where_it_is_switched_off() -> None:
    off = {"type": "disabled"}
    said = [user("go"), assistant(thinking(), call("a")), user(result("a"))]
    repaired = mended("B21", said, "When thinking is disabled", thinking=off)
    assert repaired == answered(result("a"))
    assert check(said, thinking=None) == []


def test_B23_a_call_cut_off_in_the_middle_goes_with_its_result() -> None:
    said = [user("go"), assistant("I look", call("a") | {"partialJson": '{"pa'}), user(R2, "next")]
    repaired, findings = repair(said)
    assert repaired == turn("I look")
    assert [f.code for f in findings] == ["B23", "B23"]


def test_B25_half_of_a_server_tools_pair_goes() -> None:
    use: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    assert check(turn(use, found, "so")) == []
    missing = "was found without a corresponding `web_search_tool_result`"
    assert mended("B25", turn(use, "so"), missing) == turn("so")
    unexpected = "must have a corresponding `server_tool_use`"
    assert mended("B25", turn(found, "so"), unexpected) == turn("so")


def test_B25_a_server_tools_result_may_wait_for_other_results_or_a_paused_turn() -> None:
    use: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    beside = [user("go"), assistant(use, call("a")), user(R2)]
    assert check(beside) == []
    assert check([*beside, assistant(found, "so"), user("next")]) == []
    missing = "was found without a corresponding `web_search_tool_result`"
    spoken = [user("go"), assistant(use, call("a")), user(R2, "and?")]
    assert mended("B25", spoken, missing) == [user("go"), assistant(call("a")), user(R2, "and?")]
    paused = [user("go"), assistant("I look", use)]
    assert check(paused) == []
    assert mended("B25", [*paused, user("next")], missing) == turn("I look")


def test_B26_five_cache_marks_all_go_four_stay() -> None:
    four = [user(*(text(f"{n}") | MARK for n in range(4)))]
    assert check(four) == []
    five = [user(*(text(f"{n}") | MARK for n in range(5)))]
    assert mended("B26", five, "A maximum of 4 blocks with cache_control may be provided") == [
        user(*(f"{n}" for n in range(5)))
    ]


@pytest.mark.parametrize(
    "block", [call("a") | {"caller": {"type": "direct"}}, call("a") | {"index": 1, "text": "x"}]
)
def test_B27_extra_fields_go(block: Json) -> None:
    said = [user("go"), assistant(block), user(result("a"))]
    assert mended("B27", said, "Extra inputs are not permitted") == answered(result("a"))


def test_B27_extra_fields_of_a_message_go() -> None:
    said = [user("go") | {"id": "msg_1", "model": "m"}]
    assert mended("B27", said, "messages.0.id: Extra inputs are not permitted") == [user("go")]


def test_B28_blocks_go_to_the_role_that_may_hold_them() -> None:
    said = [user("go"), assistant("look", call("a"), result("a", "out"), "so"), user("next")]
    repaired = mended("B28", said, "`tool_result` blocks can only be in `user` messages")
    assert repaired == [
        user("go"), assistant("look", call("a")), user(result("a", "out")), assistant("so"),
        user("next"),
    ]  # fmt: skip


def test_B28_a_system_message_gets_no_more_trust_than_the_user() -> None:
    said = [{"role": "system", "content": "be brief"}, user("go")]
    assert mended("B28", said, "top-level 'system' parameter") == [user("be brief", "go")]


@pytest.mark.parametrize("content", ["", []])
def test_B29_an_empty_error_says_no_output(content: Json) -> None:
    said = answered(result("a", content, is_error=True))
    repaired = mended("B29", said, "content cannot be empty if `is_error` is true")
    assert repaired == answered(result("a", "(no output)", is_error=True))


def test_B29_an_error_is_text_only() -> None:
    said = answered(result("a", [text("no"), image(png(9, 9))], is_error=True))
    repaired = mended("B29", said, "all content must be type `text` if `is_error` is true")
    inner = repaired[2]["content"][0]["content"]
    assert inner == [text("no"), text("[image removed: in an error]")]


@pytest.mark.parametrize("content", ["", []])
def test_B29_empty_output_that_is_no_error_is_fine(content: Json) -> None:
    assert check(answered(result("a", content))) == []


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (png(640, 480), "image/png"),
        (gif(640, 480), "image/gif"),
        (jpeg(640, 480), "image/jpeg"),
        (jpeg(640, 480, before=200_000), "image/jpeg"),
        (webp(640, 480, b"VP8 "), "image/webp"),
        (webp(640, 480, b"VP8L"), "image/webp"),
        (webp(640, 480, b"VP8X"), "image/webp"),
    ],
)
def test_B30_sizes_are_read_from_headers(data: bytes, media_type: str) -> None:
    picture = image_info_of(image(data))
    assert picture is not None
    assert (picture.media_type, picture.width, picture.height) == (media_type, 640, 480)
    assert check([user("see", image(data, media_type))]) == []


def test_B30_pictures_over_8000_pixels_become_text() -> None:
    assert check([user(image(png(8000, 1)))]) == []
    repaired = mended("B30", [user("see", image(png(8001, 1)))], "8000 pixels")
    assert repaired == [user("see", "[image removed: over 8000 pixels]")]


def test_B30_among_more_than_twenty_pictures_2000_pixels_is_the_limit() -> None:
    small, large = image(png(2000, 9)), image(png(2001, 9))
    assert check([user(*[small] * 19, large)]) == []
    said = [user(large, *[small] * 20, image(png(2002, 9)))]
    repaired = mended("B30", said, "many-image requests: 2000")
    kinds = [block["type"] for block in repaired[0]["content"]]
    assert kinds == ["text", *["image"] * 20, "text"]


def test_B31_the_base64_text_is_what_is_measured() -> None:
    huge = image(png(10, 10) + b"\0" * (4 * 1024 * 1024))
    said = answered(result("a", [text("see"), huge]))
    repaired = mended("B31", said, "image exceeds 5 MB maximum")
    inner = repaired[2]["content"][0]["content"]
    assert inner == [text("see"), text("[image removed: over 5 MB]")]


@pytest.mark.parametrize("data", [b"no picture", png(9, 9)[:20], png(0, 9)])
def test_B32_unreadable_pictures_become_text(data: bytes) -> None:
    repaired = mended("B32", [user("see", image(data))], "Could not process image")
    assert repaired == [user("see", "[image removed: unreadable]")]


def test_B33_the_media_type_is_what_the_bytes_say() -> None:
    said = [user("see", image(gif(9, 9), "image/jpeg"))]
    repaired = mended("B33", said, "the image appears to be a image/gif image")
    assert repaired == [user("see", image(gif(9, 9), "image/gif"))]


def test_B34_the_newest_600_pictures_stay() -> None:
    pictures = [image(png(n, 1)) for n in range(1, 603)]
    repaired = mended("B34", [user(*pictures)], "too many images and documents: 602 + 0 > 600")
    kinds = [block["type"] for block in repaired[0]["content"]]
    assert kinds == [*["text"] * 2, *["image"] * 600]


@pytest.mark.parametrize("bad", ["\ud83d", "a\udfffb"])
def test_B38_lone_surrogates_become_replacement_characters(bad: str) -> None:
    said = [user("go " + bad), assistant(call("a", "t", {bad: [bad]})), user(result("a", bad))]
    repaired = mended("B38", said, "not valid JSON")
    good = bad.replace("\ud83d", "\ufffd").replace("\udfff", "\ufffd")
    assert repaired[0] == user("go " + good)
    assert repaired[1]["content"][0]["input"] == {good: [good]}


def test_B38_numbers_that_json_does_not_know_become_null() -> None:
    said = [user("go"), assistant(call("a", "t", {"n": float("nan")})), user(result("a"))]
    assert mended("B38", said, "not valid JSON")[1] == assistant(call("a", "t", {"n": None}))


def test_B39_roles_alternate_from_a_user_on() -> None:
    said = [assistant("hello"), user("a"), user("b"), assistant("c"), assistant("d"), user("e")]
    repaired = mended("B39", said, 'first message must use the "user" role')
    assert repaired == [
        user(CONTINUE), assistant("hello"), user("a", "b"), assistant("c", "d"), user("e")
    ]  # fmt: skip


def test_B39_an_answer_after_a_lost_result_stays_behind_it() -> None:
    said = [user("go"), assistant(call("a")), assistant("the tests pass"), user("next")]
    repaired, _ = repair(said)
    assert repaired == [
        user("go"), assistant(call("a")), user(R2), assistant("the tests pass"), user("next")
    ]  # fmt: skip


def test_B56_what_is_no_message_is_skipped() -> None:
    said = ["?", {"role": "user", "contnet": "x"}, None, user("go"), {"content": "no role"}]
    assert mended("B56", said, "Input should be an object") == [user("go")]


def test_B57_error_texts_stored_as_answers_are_not_sent() -> None:
    error = assistant("API Error: 529 Overloaded") | {"isApiErrorMessage": True}
    other = assistant("API Error") | {"model": "<synthetic>"}
    repaired, findings = repair([user("go"), error, other, user("again")])
    assert repaired == [user("go", "again")]
    assert [f.code for f in findings][:2] == ["B57", "B57"]


def test_B58_a_prompt_stored_again_is_sent_once() -> None:
    repaired, findings = repair([user("go"), user("go"), user("go")])
    assert repaired == [user("go")]
    assert {f.code for f in findings} == {"B58"}


def test_R6_unknown_blocks_keep_their_text() -> None:
    said = turn({"type": "advice", "text": "mind the gap"}, {"type": "hologram"}, "so")
    assert mended("R6", said, "does not match any expected tag") == turn("mind the gap", "so")


@pytest.mark.parametrize("tail", ["user", "prefill", "open"])
def test_nothing_said_yet_is_valid(tail: Tail) -> None:
    assert check([], tail=tail) == []
    assert repair([], tail=tail) == ([], ())


def test_content_may_be_a_bare_string() -> None:
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok"}, user("x")]
    assert check(said) == []
    assert repair(said)[0] is said
    blank = [{"role": "user", "content": " "}, user("x")]
    assert "B13" in codes(check(blank))
    assert repair(blank)[0] == [user("x")]
