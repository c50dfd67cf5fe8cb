"""From fields to a profile."""

from __future__ import annotations

import pytest
from tests.fakes.surveys import make_block

from sampan.errors import BadInputError, IncompatibleError
from sampan.spec import codec
from sampan.spec.target import DiskFacts, GpuFacts, LimitsFacts, Moment, NpuFacts, TargetProfile, UserFacts
from sampan.survey import pasted

LEAST = "ab=0201b700;pg=65536;"


def read(body: str) -> TargetProfile:
    return pasted.profile(make_block(body), name="far", where="paste.txt")


def test_what_is_not_said_stays_unknown() -> None:
    profile = read(LEAST)
    assert (profile.arch, profile.page_size, profile.name) == ("aarch64", 65536, "far")
    assert (profile.memory_bytes, profile.cpu_quota, profile.proxies, profile.user, profile.moment) == (None,) * 5
    assert (profile.cpu.model, profile.cpu.features_known) == ("unknown", False)


def test_composite_values() -> None:
    profile = read(
        LEAST
        + "g=Tesla_P4,6.1,470.82.01,7611;n=2,910B3,23.0.rc2;u=ops,1000,docker+wheel,yes;px=http%5Fproxy_no%5Fproxy;"
        "v=/dev/davinci0,crw-rw----,HwHiAiUser,HwHiAiUser,no;v=/dev/davinci1,;d=/,/,xfs,,100,50;d=/tmp,/tmp,tmpfs,es,8,8;"
        "d=/opt,/;lm=65536;ln=-1;cq=150000/100000;ml=none;t=2026-11-30T08:00:00Z;p=22,8080;"
    )
    assert profile.gpus == (GpuFacts("Tesla P4", "6.1", "470.82.01", 7611 << 20),)
    assert profile.npus == NpuFacts(2, "910B3", "23.0.rc2")
    assert profile.user == UserFacts("ops", 1000, ("docker", "wheel"), True)
    assert profile.proxies == ("http_proxy", "no_proxy")
    assert [(one.path, one.mode, one.usable) for one in profile.devices] == [
        ("/dev/davinci0", "crw-rw----", False),
        ("/dev/davinci1", "crw-rw----", False),
    ]
    assert profile.disks == (
        DiskFacts("/", "/", "xfs", size_bytes=102400, free_bytes=51200),
        DiskFacts("/tmp", "/tmp", "tmpfs", noexec=True, nosuid=True, size_bytes=8192, free_bytes=8192),
        DiskFacts("/opt", "/", "xfs", size_bytes=102400, free_bytes=51200),
    )
    assert profile.limits == LimitsFacts(memlock=65536, nofile=-1)
    assert (profile.cpu_quota, profile.memory_limit_bytes) == (1.5, None)
    assert profile.moment == Moment("2026-11-30T08:00:00Z", None, (22, 8080))
    assert codec.from_json(TargetProfile, codec.to_json(profile), where="-") == profile


def test_libraries_that_an_older_script_did_not_look_for_are_unknown() -> None:
    assert (read(LEAST).libraries, read(LEAST).absent_libraries) == (None, ())
    profile = read(LEAST + "li=6,a4;")
    assert profile.libraries == ("libz.so.1", "liblzma.so.5", "libmvec.so.1")
    assert profile.absent_libraries == ("libbz2.so.1.0", "libcrypt.so.1", "libnsl.so.1")
    assert codec.from_json(TargetProfile, codec.to_json(profile), where="-") == profile


@pytest.mark.parametrize("value", ["x,a4", "9,a4", "-1,a4", "6", "6,xy"])
def test_a_list_of_libraries_that_is_none(value: str) -> None:
    with pytest.raises(BadInputError) as raised:
        read(LEAST + f"li={value};")
    assert raised.value.key == "survey.block-field"


def test_no_proxies_is_another_thing_than_unknown() -> None:
    assert read(LEAST + "px=;").proxies == ()


def test_fields_of_a_later_script_are_kept() -> None:
    profile = read(LEAST + "zz=new_fact;zz=again;z=3;")
    assert profile.extra == {"survey": {"zz": ["new_fact", "again"]}, "survey_dropped": 3}
    assert codec.from_json(TargetProfile, codec.to_json(profile), where="-").extra == profile.extra


def test_the_part_number_names_the_cpu() -> None:
    assert read(LEAST + "ci=0x48;cp=0xd01;hw=917fff;").cpu.vendor == "HiSilicon"


@pytest.mark.parametrize(
    "body", ["ab=0201b700;", LEAST + "so=two;", LEAST + "hw=xyz;", LEAST + "xf=q;", LEAST + "u=a,b,,;"]
)
def test_a_value_that_makes_no_sense(body: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read(body)
    assert caught.value.key == "survey.block-field"


@pytest.mark.parametrize("abi", ["", "0202b700", "0201ffff", "02"])
def test_an_unknown_kind_of_programs(abi: str) -> None:
    with pytest.raises(IncompatibleError) as caught:
        read(f"ab={abi};pg=4096;")
    assert caught.value.key == "survey.userland"


def test_a_profile_of_an_earlier_release_is_still_read() -> None:
    text = '{"schema":"sampan/target-profile/1","name":"x","arch":"aarch64","os":{"id":"a","name":"b"},'
    text += '"cpu":{"model":"m"},"page_size":4096}'
    profile = codec.from_json(TargetProfile, text, where="-")
    assert (profile.limits, profile.disks, profile.user) == (LimitsFacts(), (), None)


@pytest.mark.parametrize("field", ["pg=4097", "pg=0", "mt=-1", "co=-2", "ml=-5", "lm=-2", "mt=1e9", "so=x"])
def test_numbers_without_sense(field: str) -> None:
    body = f"ab=0201b700;{field};" if field.startswith("pg") else f"ab=0201b700;pg=4096;{field};"
    with pytest.raises(BadInputError) as caught:
        pasted.profile(make_block(body), name="far", where="-")
    assert caught.value.key == "survey.block-field"
