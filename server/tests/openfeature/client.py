"""Tests OpenFeature's Python client for servers, which requests one flag at a time."""

import os

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason

KEY = os.environ["SERVER_KEY"]
CANARY = EvaluationContext(
    os.environ["CANARY"], {"app_id": "com.example.shop", "os_name": "android", "app_version": "4.12.0", "build": 41200}
)
OTHER = EvaluationContext(os.environ["OTHER"], {"os_name": "ios"})


def client(headers, context=CANARY):
    domain = repr((headers, context))
    api.set_provider(OFREPProvider(os.environ["SERVER_URL"], headers_factory=lambda: headers), domain)
    found = api.get_client(domain)
    found.context = context
    return found


BEARER = client({"Authorization": f"Bearer {KEY}"})


def every_type_of_flag():
    for c in [BEARER, client({"X-API-Key": KEY})]:
        assert c.get_boolean_value("tracing.enabled", False) is True
        assert c.get_float_value("sampling.janks", 0.0) == 0.25
        assert c.get_integer_value("poll_interval_s", 0) == 300
        assert c.get_string_value("checkout button", "none") == "green"
        assert c.get_object_value("sampling.spans", {}) == {"default": 0.5, "overrides": [{"name": "app.start", "rate": 1.0}]}
        assert c.get_object_value("tracing.allow", []) == [r"^com\.example\."]
        assert c.get_object_value("limits", {}) == {"cart": 20, "tags": ["a", "b"]}


def a_slash_in_a_name():
    # This client does not encode it.
    assert BEARER.get_integer_value("team/size", 0) == 7


def why_a_flag_is_what_it_is():
    details = BEARER.get_boolean_details("tracing.enabled", False)
    assert (details.reason, details.variant, details.error_code) == (Reason.SPLIT, "android+canary", None), details
    assert details.flag_metadata == {"revision": 1}


def another_device():
    # By a context of the call, which is merged into the client's, and by one of the client.
    for details in [
        BEARER.get_string_details("checkout button", "none", OTHER),
        client({"X-API-Key": KEY}, OTHER).get_string_details("checkout button", "none"),
    ]:
        assert (details.value, details.reason, details.variant) == ("blue", Reason.STATIC, "base"), details


def errors():
    def code(c, flag="tracing.enabled"):
        details = c.get_boolean_details(flag, True)
        assert details.value is True and details.reason == Reason.ERROR, details
        return details.error_code, details.error_message

    authorized = {"Authorization": f"Bearer {KEY}"}
    assert code(BEARER, "no such flag") == (ErrorCode.FLAG_NOT_FOUND, "there is no flag with this name")
    assert code(BEARER, "sampling.janks")[0] == ErrorCode.TYPE_MISMATCH
    assert code(client(authorized, EvaluationContext(None, {"os_name": "android"})))[0] == ErrorCode.TARGETING_KEY_MISSING
    assert code(client(authorized, EvaluationContext("x", {"build": "many"})))[0] == ErrorCode.INVALID_CONTEXT
    both = EvaluationContext("x", {"os_name": "android", "osName": "ios"})
    assert code(client(authorized, both)) == (ErrorCode.INVALID_CONTEXT, "duplicate field `os_name`")
    assert code(client({"X-API-Key": "wrong"})) == (ErrorCode.GENERAL, "unauthorized")
    assert code(client(authorized, EvaluationContext("x", {"app_id": "com.example.other"}))) == (ErrorCode.GENERAL, "forbidden")


for work in [every_type_of_flag, a_slash_in_a_name, why_a_flag_is_what_it_is, another_device, errors]:
    work()
    print(work.__name__, "ok")
