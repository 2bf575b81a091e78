"""Which URLs and addresses are refused before anything is called."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from redkey.errors import FetchRefused
from redkey.services.addresses import is_public, read_target

NOT_PUBLIC = [
    "0.0.0.0",  # noqa: S104
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:831::200e"]

REFUSED = [
    "",
    "agent.example.com",
    "//agent.example.com/card",
    "file:///etc/passwd",
    "gopher://agent.example.com/",
    "ftp://agent.example.com/card.json",
    "javascript:alert(1)",
    "data:application/json,{}",
    "https://",
    "https:///card",
    "https://user@agent.example.com/",
    "https://user:pass@agent.example.com/",
    "https://@agent.example.com/",
    "https://127.0.0.1\\@agent.example.com/",
    "https://agent.example.com\\@127.0.0.1/",
    "https://agent.example.com /card",
    "https://agent.example.com/ca\trd",
    "https://agent.example.com/ca\nrd",
    "https://agent.exa\x00mple.com/",
    "https://agent.example.com:0/",
    "https://agent.example.com:99999/",
    "https://agent.example.com:https/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.0.01/",
    "https://1.2.3.4.5/",
    "https://[::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[::1/",
    "https://[not-an-address]/",
    "https://agent..example.com/",
    "https://-agent.example.com/",
    "https://agent.ex%61mple.com/",
    "https://ägent.example.com/",
    "https://" + "a" * 64 + ".example.com/",
    "https://" + "a." * 130 + "example.com/",
    "https://agent.example.com/" + "a" * 2048,
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_behind_which_this_machine_or_network_may_be_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_that_is_no_plain_web_address_is_refused_by_its_text(url: str) -> None:
    with pytest.raises(FetchRefused) as refused:
        read_target(url)
    assert refused.value.code == "url_refused"


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://Agent.Example.COM", "https://agent.example.com/"),
        ("https://agent.example.com:443/card?x=1#part", "https://agent.example.com/card?x=1"),
        ("https://agent.example.com./card", "https://agent.example.com/card"),
        ("https://agent.example.com:8443/card", "https://agent.example.com:8443/card"),
        ("https://8.8.8.8/card", "https://8.8.8.8/card"),
        ("https://[2606:4700:4700:0::1111]/card", "https://[2606:4700:4700::1111]/card"),
        ("http://agent.example.com/card", "http://agent.example.com/card"),
    ],
)
def test_a_url_is_written_again_from_its_parts(url: str, written: str) -> None:
    assert read_target(url).url == written
