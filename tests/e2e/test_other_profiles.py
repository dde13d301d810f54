"""The program that goes on through another profile: what it prints, exits with and bills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.test_clouds import env, signed_in
from tests.support.clouds import CloudServer
from tests.support.program import Program
from tests.support.server import LoopbackServer
from tests.support.serving import serving

__all__ = ["env"]

OPUS = "claude-opus-5-5"
BUSY = {"text": "never", "faults": [{"status": 529, "type": "overloaded_error"}]}
READS = {"tools": [{"name": "read_file", "input": {"path": "README.md"}}]}


def settings(first: LoopbackServer, cloud: CloudServer) -> str:
    return (
        f'base_url = "{first.url}"\nmodel = "{OPUS}"\ntitles = "prompt"\n'
        'fallback_models = ["@aws"]\n[retry]\nmax_attempts = 0\n'
        f'[profile.aws]\nbase_url = "{cloud.base_url}"\n'
        f'[profile.aws.provider]\nkind = "bedrock"\nregion = "{cloud.region}"\n'
    )


def test_a_turn_goes_on_through_bedrock_and_is_billed_there(
    holdfast: Program, config: Any, tmp_path: Path
) -> None:
    first = LoopbackServer({"turns": [READS, BUSY], "catalogue": True, "priced": True})
    cloud = CloudServer("bedrock", {"turns": [{"text": "Done."}], "catalogue": True})
    with serving(first), serving(cloud):
        config(settings(first, cloud))
        done = holdfast("-p", "read it", "--output-format", "json", env=signed_in(cloud, tmp_path))
        by_profile = holdfast("usage", "--by", "profile", "--json")
        listed = holdfast("sessions", "list", "--json")
        (session,) = json.loads(listed.stdout)
        verified = holdfast("sessions", "verify", session["id"])
    assert done.object["result"] == "Done."
    assert cloud.refused == []
    assert f"Switched to @aws/{OPUS}" in done.stderr
    assert "tokens again" in done.stderr
    rows = {row["name"]: row["cost_usd"] for row in json.loads(by_profile.stdout)["rows"]}
    assert rows.keys() == {"default", "aws"}
    assert abs(sum(rows.values()) - done.object["cost_usd"]) < 1e-4
    assert "3 requests: all rebuilt exactly as sent." in verified.stderr


def test_doctor_looks_at_what_signs_through_the_other_profile(
    holdfast: Program, config: Any, tmp_path: Path
) -> None:
    first, cloud = LoopbackServer({}), CloudServer("bedrock", {})
    with serving(first), serving(cloud):
        config(settings(first, cloud))
        good = holdfast("doctor", "--json", env=signed_in(cloud, tmp_path))
        bad = holdfast("doctor", "--json")
    for done, status in ((good, "ok"), (bad, "warn")):
        checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
        assert checks["fallback"]["status"] == status
        assert checks["fallback"]["detail"].startswith("@aws: ")
