"""The shapes of secrets: how the tokens and keys of well-known services are written, each under its own name.

A shape has a prefix, a fixed form or a checksum by design. `marks` are fixed texts, at least one of which is in any
text with the secret: a search for them first is cheap. A shape with a check counts only if the check passes, so that a
placeholder or a mistyped token is not taken for a secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

Check = Callable[[re.Match[str]], bool]


class Shape(NamedTuple):
    """How one kind of secret is written."""

    name: str
    marks: tuple[str, ...]
    regex: re.Pattern[str]
    check: Check | None = None


_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PLACEHOLDER = re.compile(r"(?i)\$\{?\w+\}?|<[^>]*>|\{+[^}]*\}+|\*+|x+|\.+|password|passwd|pass|pwd|secret|changeme")


def _crc32_base62(match: re.Match[str]) -> bool:
    """GitHub's tokens end in the CRC-32 of their random part, in base 62."""
    number, digits = zlib.crc32(match["body"].encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0") == match["sum"]


def _is_jwt(match: re.Match[str]) -> bool:
    """A signed token: a header that names an algorithm, and a signature."""
    try:
        header = json.loads(base64.urlsafe_b64decode(match["header"] + "=="))
    except (binascii.Error, ValueError):
        return False
    return isinstance(header, dict) and isinstance(header.get("alg"), str) and header["alg"].lower() != "none"


def _is_password(match: re.Match[str]) -> bool:
    """Return whether it is a password and not a placeholder."""
    return not _PLACEHOLDER.fullmatch(match["password"])


def _shape(name: str, marks: str, regex: str, check: Check | None = None) -> Shape:
    return Shape(name, tuple(marks.split()), re.compile(regex), check)


def _token(name: str, marks: str, regex: str, check: Check | None = None) -> Shape:
    """A shape that is a whole word: not part of a longer one."""
    return _shape(name, marks, rf"(?<![A-Za-z0-9_-])(?:{regex})(?![A-Za-z0-9_-])", check)


_KEYS = (
    # Stripe's restricted keys have the same prefix.
    _token("redkey_key", "rk_", r"rk_(?!live_|test_)[0-9A-Za-z]{4,16}_[0-9A-Za-z]{20,128}"),
    _shape("private_key", "PRIVATE", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    _shape("putty_private_key", "PuTTY", r"PuTTY-User-Key-File-\d"),
    _token("age_secret_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _shape("note_signing_key", "PRIVATE+KEY+", r"PRIVATE\+KEY\+[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]{40,}"),
    # A private key as Hedera's tools print it: DER in hex.
    _token("ed25519_der_key", "0506032b65700422", r"302e020100300506032b657004220420[0-9a-f]{64}"),
    _token("ecdsa_der_key", "06052b8104000a04", r"3030020100300706052b8104000a04220420[0-9a-f]{64}"),
    _shape("jwt", "eyJ", r"(?<![A-Za-z0-9_-])(?P<header>eyJ[\w-]{10,})\.[\w-]{4,}\.[\w-]{16,}", _is_jwt),
    _shape(
        "url_password",
        "://",
        r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/:@\"'<>]{0,200}:(?P<password>[^\s/@\"']{3,200})@[\w.\[-]",
        _is_password,
    ),
    _shape("basic_authorization", "asic", r"(?i)authorization['\"]?\s*[:=]\s*['\"]?basic\s+[a-z0-9+/]{12,}={0,2}"),
    _shape("bearer_authorization", "earer", r"(?i)authorization['\"]?\s*[:=]\s*['\"]?bearer\s+[\w.~+/-]{20,}=*"),
)

_CODE = (
    _token(
        "github_token",
        "ghp_ gho_ ghu_ ghs_ ghr_",
        r"gh[pousr]_(?P<body>[A-Za-z0-9]{30})(?P<sum>[A-Za-z0-9]{6})",
        _crc32_base62,
    ),
    _token("github_long_token", "ghu_ ghs_ ghr_", r"gh[usr]_[A-Za-z0-9]{70,251}"),
    _token("github_fine_grained_token", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _shape(
        "gitlab_token",
        "glpat- glptt- gldt- glrt- glcbt- glft- glimt- glagent- gloas- glsoat- GR1348941",
        r"(?<![A-Za-z0-9_-])(?:gl(?:pat|ptt|dt|rt|cbt|ft|imt|agent|oas|soat)-[A-Za-z0-9_-]{20,}|GR1348941[\w-]{20})",
    ),
    _shape("atlassian_token", "ATATT3 ATCTT3", r"(?<![A-Za-z0-9_-])AT[AC]TT3[\w=-]{100,}"),
    _token("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _token("pypi_token", "pypi-AgE", r"pypi-AgE[\w-]{50,}"),
    _token("rubygems_key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _token("crates_token", "cio", r"cio[A-Za-z0-9]{32}"),
    _token("nuget_key", "oy2", r"oy2[a-z0-9]{43}"),
    _token("clojars_token", "CLOJARS_", r"CLOJARS_[0-9a-z]{60}"),
    _token("docker_token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    _token("sonar_token", "sqp_ squ_ sqa_", r"sq[pua]_[0-9a-f]{40}"),
    _token("buildkite_token", "bkua_", r"bkua_[0-9a-f]{40}"),
    _token("postman_key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
)

_CLOUDS = (
    _token("aws_access_key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _shape(
        "aws_secret_key",
        "ecret ECRET",
        r"(?i)aws_?secret_?(?:access_?)?key['\"]?\s*[:=]\s*['\"]?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    ),
    _shape("aws_bedrock_key", "ABSK", r"(?<![A-Za-z0-9_-])ABSK[A-Za-z0-9+/]{109,269}={0,2}"),
    _token("google_api_key", "AIza", r"AIza[\w-]{35}"),
    _token("google_oauth_secret", "GOCSPX-", r"GOCSPX-[\w-]{28}"),
    _shape("google_oauth_token", "ya29.", r"(?<![A-Za-z0-9_-])ya29\.[\w-]{20,}"),
    _shape("azure_storage_key", "AccountKey=", r"AccountKey=[A-Za-z0-9+/]{86}=="),
    _shape("azure_signature", "sig=", r"[?&]sig=[A-Za-z0-9%+/]{43,}(?:%3D|=)"),
    _shape("azure_client_secret", "8Q~ 7Q~", r"(?<![\w~.-])[\w~.-]{3}[78]Q~[\w~.-]{31,34}(?![\w~.-])"),
    _token("alibaba_key", "LTAI", r"LTAI[A-Za-z0-9]{20}"),
    _token("tencent_key", "AKID", r"AKID[A-Za-z0-9]{32}"),
    _token("digitalocean_token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _token("cloudflare_origin_key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    _token("heroku_key", "HRKU-", r"HRKU-[\w-]{36,}"),
    _shape("flyio_token", "fm1 fm2_ fo1_", r"(?<![A-Za-z0-9_-])(?:fm1[ar]_|fm2_)[\w+/=-]{100,}|\bfo1_[\w-]{43}"),
    _token("netlify_token", "nfp_", r"nfp_[A-Za-z0-9]{36}"),
    _token("tailscale_key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}"),
    _shape("vault_token", "hvs. hvb. hvr.", r"(?<![A-Za-z0-9_-])hv[sbr]\.[\w-]{24,}"),
    _shape("terraform_token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}"),
    _token("pulumi_token", "pul-", r"pul-[0-9a-f]{40}"),
    _token("doppler_token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]+\.)?[A-Za-z0-9]{40,}"),
    _shape("one_password_token", "ops_eyJ", r"(?<![A-Za-z0-9_-])ops_eyJ[\w=-]{200,}"),
)

_MODELS = (
    _token("openai_key", "T3BlbkFJ", r"sk-(?:proj-|svcacct-|admin-)?[\w-]{20,}T3BlbkFJ[\w-]{20,}"),
    _token("anthropic_key", "sk-ant-", r"sk-ant-(?:api|admin|oat)\d{2}-[\w-]{80,}"),
    _token("openrouter_key", "sk-or-", r"sk-or-v1-[0-9a-f]{64}"),
    _token("deepseek_key", "sk-", r"sk-[0-9a-f]{32}"),
    _token("huggingface_token", "hf_", r"hf_[A-Za-z]{34}"),
    _token("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{52}"),
    _token("replicate_token", "r8_", r"r8_[A-Za-z0-9]{37}"),
    _token("perplexity_key", "pplx-", r"pplx-[A-Za-z0-9]{48,}"),
    _token("xai_key", "xai-", r"xai-[A-Za-z0-9]{80}"),
    _token("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    _token("pinecone_key", "pcsk_", r"pcsk_[A-Za-z0-9_]{50,}"),
)

_SERVICES = (
    _shape("slack_token", "xox", r"(?<![A-Za-z0-9_-])xox[abeoprs]-(?:\d+-)*[A-Za-z0-9-]{10,}"),
    _token("slack_app_token", "xapp-", r"xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]{20,}"),
    _shape("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}"),
    _shape("discord_webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d{15,}/[\w-]{40,}"),
    _token("telegram_bot_token", ":AA", r"\d{8,10}:AA[\w-]{33}"),
    _token("stripe_key", "_live_ _test_", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    _shape("stripe_webhook_secret", "whsec_", r"(?<![A-Za-z0-9_-])whsec_[A-Za-z0-9+/]{24,}"),
    _token("shopify_token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _token("square_token", "sq0 EAAA", r"sq0(?:atp|csp|idp)-[\w-]{22,43}|EAAA[\w-]{60}"),
    _shape("braintree_token", "access_token$", r"access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    _token("easypost_key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),
    _token(
        "plaid_token",
        "access-",
        r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    _token("sendgrid_key", "SG.", r"SG\.[\w-]{22}\.[\w-]{43}"),
    _token("mailgun_key", "key-", r"key-[0-9a-f]{32}"),
    _token("mailchimp_key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    _token("brevo_key", "xkeysib-", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _token("twilio_key", "SK", r"SK[0-9a-f]{32}"),
    _token("notion_token", "ntn_ secret_", r"ntn_[A-Za-z0-9]{43,}|secret_[A-Za-z0-9]{43}"),
    _token("linear_key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    _token("airtable_token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _token("figma_token", "figd_", r"figd_[\w-]{40,}"),
    _token("contentful_token", "CFPAT-", r"CFPAT-[\w-]{43}"),
    _token("databricks_token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _token("planetscale_token", "pscale_", r"pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}"),
    _token("supabase_key", "sbp_ sb_secret_", r"sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}"),
    _shape(
        "grafana_token",
        "glsa_ glc_",
        r"(?<![A-Za-z0-9_-])(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{40,})",
    ),
    _token("newrelic_key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _shape("sentry_token", "sntry", r"(?<![A-Za-z0-9_-])sntry[su]_[\w+/=]{40,}"),
    _token("dynatrace_token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _token("mapbox_token", "sk.eyJ", r"sk\.eyJ[\w-]{40,}\.[\w-]{20,}"),
    _token("facebook_token", "EAA", r"EAA[A-Za-z0-9]{90,}"),
    _token("dropbox_token", "sl.", r"sl\.[\w-]{130,}"),
)

SHAPES: tuple[Shape, ...] = (*_KEYS, *_CODE, *_CLOUDS, *_MODELS, *_SERVICES)
