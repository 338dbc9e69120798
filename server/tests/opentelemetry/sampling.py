"""An app with OpenTelemetry that samples as the remote configuration says."""

import os

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

URL = os.environ["SERVER_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['SERVER_KEY']}"}
INSTALL = os.environ["INSTALL"]

api.set_provider(OFREPProvider(URL, headers_factory=lambda: HEADERS))
device = EvaluationContext(INSTALL, {"app_id": "com.example.shop", "app_version": "4.12.0"})
sampling = api.get_client().get_object_value("sampling.spans", {"default": 1.0}, device)
rate = sampling["default"]

resource = Resource.create({"service.name": "com.example.shop", "app.installation.id": INSTALL, "unjank.sample_rate": rate})
spans = TracerProvider(sampler=ParentBased(TraceIdRatioBased(rate)), resource=resource)
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{URL}/v1/traces", headers=HEADERS)))
tracer = spans.get_tracer("shop")
for _ in range(1000):
    with tracer.start_as_current_span("sampled"):
        pass
spans.shutdown()
print(rate)
