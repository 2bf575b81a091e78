"""Samples of secrets, composed at run time: no file of the repository contains text in the format of a secret."""

from __future__ import annotations

import base64
import json
import random
import string
import zlib

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
URL = ALNUM + "_"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

_draw = random.Random(20)


def of(alphabet: str, count: int) -> str:
    return "".join(_draw.choice(alphabet) for _ in range(count))


def b64(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def with_checksum(prefix: str) -> str:
    body = of(ALNUM, 30)
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return prefix + body + digits.rjust(6, "0")


def uuid() -> str:
    return "-".join(of(HEX, count) for count in (8, 4, 4, 4, 12))


# The name of a format -> texts that contain such a secret.
SAMPLES: dict[str, list[str]] = {
    "redkey_key": ["rk" + "_" + of(UPPER, 16) + "_" + of(ALNUM, 43)],
    "private_key": [
        "-----BEGIN " + kind + "-----\n" + of(ALNUM, 64)
        for kind in (
            "PRIV" + "ATE KEY",
            "RSA PRIV" + "ATE KEY",
            "EC PRIV" + "ATE KEY",
            "OPENSSH PRIV" + "ATE KEY",
            "ENCRYPTED PRIV" + "ATE KEY",
            "PGP PRIV" + "ATE KEY BLOCK",
        )
    ],
    "putty_private_key": ["PuTTY-User-" + "Key-File-3: ssh-ed25519"],
    "age_secret_key": ["AGE-SECRET-" + "KEY-1" + of(BECH32, 58)],
    "note_signing_key": ["PRIVATE" + "+KEY+log.example/one+" + of(HEX, 8) + "+" + of(ALNUM, 44)],
    "ed25519_der_key": ["302e0201003005" + "06032b657004220420" + of(HEX, 64)],
    "ecdsa_der_key": ["30300201003007" + "06052b8104000a04220420" + of(HEX, 64)],
    "jwt": [b64({"alg": "EdDSA", "typ": "JWT"}) + "." + b64({"sub": "me"}) + "." + of(URL, 86)],
    "url_password": [
        "postgres:" + "//app:" + of(ALNUM, 12) + "@db.example:5432/app",
        "https:" + "//:" + of(ALNUM, 20) + "@git.example",
        "redis:" + "//default:pa" + "ss%21word@[::1]:6379",
    ],
    "basic_authorization": ["Authoriz" + "ation: Basic " + of(ALNUM, 24) + "=="],
    "bearer_authorization": ['{"authoriz' + 'ation": "Bearer ' + of(ALNUM, 40) + '"}'],
    "github_token": [with_checksum("gh" + kind + "_") for kind in "pousr"],
    "github_long_token": ["ghr" + "_" + of(ALNUM, 76)],
    "github_fine_grained_token": ["github" + "_pat_" + of(ALNUM, 22) + "_" + of(ALNUM, 59)],
    "gitlab_token": ["gl" + kind + "-" + of(ALNUM, 20) for kind in ("pat", "dt", "rt", "ptt")]
    + ["GR13" + "48941" + of(ALNUM, 20)],
    "atlassian_token": ["ATA" + "TT3" + of(ALNUM, 180) + "=" + of(UPPER, 8)],
    "npm_token": ["npm" + "_" + of(ALNUM, 36)],
    "pypi_token": ["pypi-" + "AgEIcHlwaS5vcmc" + of(ALNUM, 150)],
    "rubygems_key": ["rubygems" + "_" + of(HEX, 48)],
    "crates_token": ["ci" + "o" + of(ALNUM, 32)],
    "nuget_key": ["oy" + "2" + of(LOWER, 43)],
    "clojars_token": ["CLOJARS" + "_" + of(LOWER, 60)],
    "docker_token": ["dckr" + "_pat_" + of(URL, 27)],
    "sonar_token": ["sq" + "p_" + of(HEX, 40), "sq" + "u_" + of(HEX, 40)],
    "buildkite_token": ["bk" + "ua_" + of(HEX, 40)],
    "postman_key": ["PM" + "AK-" + of(HEX, 24) + "-" + of(HEX, 34)],
    "aws_access_key": [kind + "A" + of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16) for kind in ("AKI", "ASI")],
    "aws_secret_key": ["aws_secret" + "_access_key = " + of(ALNUM + "/+", 40)],
    "aws_bedrock_key": ["AB" + "SK" + of(ALNUM, 128)],
    "google_api_key": ["AI" + "za" + of(URL, 35)],
    "google_oauth_secret": ["GOC" + "SPX-" + of(URL, 28)],
    "google_oauth_token": ["ya" + "29." + of(URL, 120)],
    "azure_storage_key": ["DefaultEndpointsProtocol=https;Account" + "Key=" + of(ALNUM, 86) + "=="],
    "azure_signature": ["https://x.blob.example/c?sv=2024&" + "sig=" + of(ALNUM, 43) + "%3D"],
    "azure_client_secret": [of(ALNUM, 3) + "8" + "Q~" + of(URL, 34)],
    "alibaba_key": ["LT" + "AI" + of(ALNUM, 20)],
    "tencent_key": ["AK" + "ID" + of(ALNUM, 32)],
    "digitalocean_token": ["do" + kind + "_v1_" + of(HEX, 64) for kind in "opr"],
    "cloudflare_origin_key": ["v1" + ".0-" + of(HEX, 24) + "-" + of(HEX, 146)],
    "heroku_key": ["HR" + "KU-" + of(URL, 60)],
    "flyio_token": ["fm" + "2_" + of(ALNUM, 200), "fo" + "1_" + of(URL, 43)],
    "netlify_token": ["nf" + "p_" + of(ALNUM, 36)],
    "tailscale_key": ["ts" + "key-auth-" + of(ALNUM, 17) + "-" + of(ALNUM, 32)],
    "vault_token": ["hv" + "s." + of(URL, 95)],
    "terraform_token": [of(ALNUM, 14) + ".atlas" + "v1." + of(ALNUM, 67)],
    "pulumi_token": ["pu" + "l-" + of(HEX, 40)],
    "doppler_token": ["dp" + ".pt." + of(ALNUM, 43), "dp" + ".st.dev_one." + of(ALNUM, 43)],
    "one_password_token": ["ops" + "_eyJ" + of(ALNUM, 300)],
    "openai_key": [
        "sk-" + of(ALNUM, 20) + "T3Blb" + "kFJ" + of(ALNUM, 20),
        "sk-" + "proj-" + of(URL, 74) + "T3Blb" + "kFJ" + of(URL, 74),
    ],
    "anthropic_key": ["sk-" + "ant-api03-" + of(URL, 93) + "AA"],
    "openrouter_key": ["sk-" + "or-v1-" + of(HEX, 64)],
    "deepseek_key": ["sk" + "-" + of(HEX, 32)],
    "huggingface_token": ["h" + "f_" + of(string.ascii_letters, 34)],
    "groq_key": ["gs" + "k_" + of(ALNUM, 52)],
    "replicate_token": ["r" + "8_" + of(ALNUM, 37)],
    "perplexity_key": ["pp" + "lx-" + of(ALNUM, 48)],
    "xai_key": ["xa" + "i-" + of(ALNUM, 80)],
    "langsmith_key": ["ls" + "v2_pt_" + of(HEX, 32) + "_" + of(HEX, 10)],
    "pinecone_key": ["pc" + "sk_" + of(ALNUM, 70)],
    "slack_token": ["xo" + "xb-" + of(string.digits, 12) + "-" + of(string.digits, 12) + "-" + of(ALNUM, 24)],
    "slack_app_token": ["xa" + "pp-1-A" + of(UPPER, 10) + "-" + of(string.digits, 13) + "-" + of(HEX, 64)],
    "slack_webhook": [
        "https://hooks." + "slack.com/services/T" + of(UPPER, 8) + "/B" + of(UPPER, 8) + "/" + of(ALNUM, 24)
    ],
    "discord_webhook": ["https://disc" + "ord.com/api/webhooks/" + of(string.digits, 18) + "/" + of(URL, 68)],
    "telegram_bot_token": ["1" + of(string.digits, 9) + ":" + "AA" + of(URL, 33)],
    "stripe_key": ["sk" + "_live_" + of(ALNUM, 24), "rk" + "_test_" + of(ALNUM, 99)],
    "stripe_webhook_secret": ["wh" + "sec_" + of(ALNUM, 32)],
    "shopify_token": ["sh" + "pat_" + of(HEX, 32), "sh" + "pss_" + of(HEX, 32)],
    "square_token": ["sq" + "0csp-" + of(URL, 43), "EA" + "AA" + of(URL, 60)],
    "braintree_token": ["access" + "_token$production$" + of(LOWER, 16) + "$" + of(HEX, 32)],
    "easypost_key": ["EZ" + "AK" + of(ALNUM, 54)],
    "plaid_token": ["access" + "-production-" + uuid()],
    "sendgrid_key": ["S" + "G." + of(URL, 22) + "." + of(URL, 43)],
    "mailgun_key": ["ke" + "y-" + of(HEX, 32)],
    "mailchimp_key": [of(HEX, 32) + "-u" + "s12"],
    "brevo_key": ["xkey" + "sib-" + of(HEX, 64) + "-" + of(ALNUM, 16)],
    "twilio_key": ["S" + "K" + of(HEX, 32)],
    "notion_token": ["nt" + "n_" + of(string.digits, 11) + of(ALNUM, 35), "sec" + "ret_" + of(ALNUM, 43)],
    "linear_key": ["lin" + "_api_" + of(ALNUM, 40)],
    "airtable_token": ["pa" + "t" + of(ALNUM, 14) + "." + of(HEX, 64)],
    "figma_token": ["fi" + "gd_" + of(URL, 43)],
    "contentful_token": ["CF" + "PAT-" + of(URL, 43)],
    "databricks_token": ["da" + "pi" + of(HEX, 32), "da" + "pi" + of(HEX, 32) + "-2"],
    "planetscale_token": ["ps" + "cale_tkn_" + of(URL, 43)],
    "supabase_key": ["sb" + "p_" + of(HEX, 40), "sb" + "_secret_" + of(URL, 31)],
    "grafana_token": ["gl" + "sa_" + of(ALNUM, 32) + "_" + of(HEX, 8), "gl" + "c_" + of(ALNUM, 90)],
    "newrelic_key": ["NR" + "AK-" + of(UPPER, 27)],
    "sentry_token": ["sn" + "tryu_" + of(HEX, 64)],
    "dynatrace_token": ["dt" + "0c01." + of(UPPER, 24) + "." + of(UPPER, 64)],
    "mapbox_token": ["sk" + ".eyJ" + of(ALNUM, 80) + "." + of(URL, 22)],
    "facebook_token": ["EA" + "A" + of(ALNUM, 150)],
    "dropbox_token": ["s" + "l." + of(URL, 140)],
}
