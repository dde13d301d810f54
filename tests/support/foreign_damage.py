"""Random damage to the session files of other agents: to fields, records and bytes."""

from __future__ import annotations

import random
from typing import Any

from tests.support.foreign import Json, lines


def damaged(records: list[Json], dice: random.Random) -> bytes:
    """A file with one to four damages of each kind; the records are changed."""
    for _ in range(dice.randint(0, 3)):
        _damage_field(dice.choice(records), dice)
    for _ in range(dice.randint(1, 4)):
        _damage_record(records, dice)
    data = lines(records)
    for _ in range(dice.randint(1, 4)):
        data = _damage_bytes(data, dice)
    return data


def _damage_field(record: Json, dice: random.Random) -> None:
    """Take out a field somewhere in a record, or give it a wrong type."""
    value: Any = record
    while True:
        is_object = isinstance(value, dict)
        keys: list[Any] = list(value) if is_object else list(range(len(value)))
        if not keys:
            return
        key = dice.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and dice.random() < 0.6:
            value = value[key]
        elif is_object and dice.random() < 0.5:
            del value[key]
            return
        else:
            value[key] = dice.choice([None, 7, "x", [], {}, {"a": 1}, True])
            return


def _damage_record(records: list[Json], dice: random.Random) -> None:
    place = dice.randrange(len(records))
    record = records[place]
    match dice.randrange(6):
        case 0:
            del records[place]
        case 1:
            records.insert(place, {**record})
        case 2:
            records.insert(dice.randrange(len(records)), records.pop(place))
        case 3:
            key = "parentUuid" if "parentUuid" in record else "parentId"
            if key in record:
                own = record.get("uuid", record.get("id"))
                record[key] = dice.choice(["gone", own, 7])
        case 4:
            record.pop("sessionId", None)
        case _:
            if isinstance(message := record.get("message"), dict):
                message["content"] = [{"type": "text", "text": ""}]


def _damage_bytes(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data))
    match dice.randrange(6):
        case 0:
            return data[: max(place, len(data) // 2)]
        case 1:
            return data[:place] + b"\0" * dice.randint(1, 600) + data[place:]
        case 2:
            return b"\xef\xbb\xbf" + data
        case 3:
            return data[:place] + b"\xff\xfe" + data[place:]
        case 4:
            return data.replace(b"\n", b"\r\n")
        case _:
            return data.replace(b"\n", b"", 1)
