"""Sends spans, log records and metrics with OpenTelemetry's exporters for Python: protobuf with gzip, over HTTP or gRPC."""

import logging
import os

from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

URL = os.environ["SERVER_URL"]
TO = {"headers": {"authorization": f"Bearer {os.environ['SERVER_KEY']}"}}
if os.environ["PROTOCOL"] == "grpc":
    from grpc import Compression
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    TO_TRACES = TO_LOGS = TO_METRICS = {**TO, "endpoint": URL, "compression": Compression.Gzip}
else:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    TO_TRACES, TO_LOGS, TO_METRICS = (
        {**TO, "endpoint": f"{URL}/v1/{signal}", "compression": Compression.Gzip} for signal in ("traces", "logs", "metrics")
    )
RESOURCE = Resource.create(
    {
        "service.name": "com.example.shop",
        "service.version": "4.12.0",
        "app.installation.id": os.environ["INSTALL"],
        "session.id": os.environ["SESSION"],
        "os.name": "android",
        "team": "checkout",
    }
)

spans = TracerProvider(resource=RESOURCE)
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(**TO_TRACES)))
tracer = spans.get_tracer("shop.cart", "2.0")
with tracer.start_as_current_span("checkout", attributes={"items": 3, "free": True, "names": ["a", "b"], "price": 9.5}) as checkout:
    checkout.add_event("paid", {"by": "card"})
    try:
        with tracer.start_as_current_span("GET /pay", kind=SpanKind.CLIENT, attributes={"http.request.method": "GET"}) as pay:
            raise ValueError("no money")
    except ValueError:
        pass
    checkout.set_status(Status(StatusCode.OK))
spans.shutdown()

delta = {Counter: AggregationTemporality.DELTA, Histogram: AggregationTemporality.DELTA}
exporter = OTLPMetricExporter(preferred_temporality=delta, **TO_METRICS)
metrics = MeterProvider(resource=RESOURCE, metric_readers=[PeriodicExportingMetricReader(exporter)])
meter = metrics.get_meter("shop.cart")
meter.create_counter("taps", unit="{tap}").add(7, {"screen": "cart"})
load = meter.create_histogram("load", unit="ms", explicit_bucket_boundaries_advisory=[10.0, 100.0])
for value in [4.0, 6.0, 50.0]:
    load.record(value)
metrics.shutdown()

logs = LoggerProvider(resource=RESOURCE)
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(**TO_LOGS)))
logger = logging.getLogger("shop")
logger.addHandler(LoggingHandler(logger_provider=logs))
logger.warning("nearly empty")
try:
    raise KeyError("cart")
except KeyError:
    logger.exception("no cart")
logs.shutdown()
