from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from devall.manifest import FILE_NAME, Maker, made_by, read_manifest
from devall.workspace import Workspace


def workspace(place: Path) -> Workspace:
    return Workspace(place, lambda data: data.replace(b"secret", b"***"))


def test_the_manifest_is_json_after_each_attachment(tmp_path: Path):
    run = workspace(tmp_path)
    for number in range(3):
        part = run.save_attachment(b"%d" % number, "text/plain", f"{number}.txt")
        listed = json.loads((run.attachments / FILE_NAME).read_text())
        assert listed == read_manifest(run.attachments)
        assert (len(listed), listed[-1]["attachment"]) == (number + 1, part.attachment)
        assert part.attachment.startswith(listed[-1]["sha256"])


def test_the_maker_is_who_is_at_work(tmp_path: Path):
    run = workspace(tmp_path)
    with made_by(Maker("node", "A")):
        run.save_attachment(b"1", "text/plain")
        with made_by(Maker("tool", "A", "draw")):
            run.save_attachment(b"1", "text/plain")
            run.save_attachment(b"1", "text/plain")
        run.save_attachment(b"1", "text/plain", maker=Maker("user"))
    found = [(e["made_by"], e["node"], e["tool"]) for e in read_manifest(run.attachments)]
    assert found == [("node", "A", ""), ("tool", "A", "draw"), ("user", "", "")]


def test_no_secret_is_in_the_manifest_and_the_sum_is_that_of_what_is_kept(tmp_path: Path):
    run = workspace(tmp_path)
    part = run.save_attachment(b"my secret", "text/plain", "secret.txt")
    [entry] = read_manifest(run.attachments)
    assert (entry["name"], entry["size"]) == ("***.txt", 6)
    assert run.read_attachment(part.attachment) == b"my ***"


def test_a_later_process_goes_on_with_the_list(tmp_path: Path):
    workspace(tmp_path).save_attachment(b"1", "text/plain")
    later = workspace(tmp_path)
    later.save_attachment(b"1", "text/plain")
    later.save_attachment(b"2", "text/plain")
    assert len(read_manifest(later.attachments)) == 2


@pytest.mark.parametrize("torn", [b"", b"[", b'[\n{"attachment": "a"},\n{"att', b'[\n{"a": 1}'])
def test_a_list_that_was_torn_is_made_whole(tmp_path: Path, torn: bytes):
    run = workspace(tmp_path)
    (run.attachments / FILE_NAME).write_bytes(torn)
    run.save_attachment(b"1", "text/plain")
    listed = json.loads((run.attachments / FILE_NAME).read_text())
    assert len(listed) == torn.count(b"}") + 1


def test_threads_do_not_lose_each_others_entries(tmp_path: Path):
    run = workspace(tmp_path)

    def save(start: int) -> None:
        for number in range(start, start + 50):
            run.save_attachment(b"%d" % number, "text/plain")

    threads = [threading.Thread(target=save, args=(at * 50,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads((run.attachments / FILE_NAME).read_text())) == 200


def test_the_manifest_is_no_attachment_and_the_users_alone(tmp_path: Path):
    run = workspace(tmp_path)
    run.save_attachment(b"1", "text/plain")
    with pytest.raises(FileNotFoundError):
        run.read_attachment(FILE_NAME)
    assert (run.attachments / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_each_entry_costs_the_same(tmp_path: Path):
    run = workspace(tmp_path)
    began = time.process_time()
    for number in range(2000):
        run.save_attachment(b"%d" % number, "text/plain")
    assert time.process_time() - began < 5
