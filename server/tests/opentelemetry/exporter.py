"""Sends spans, log records and metrics with OpenTelemetry's exporters for Python, as protobuf with gzip."""

import logging
import os
import time

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

URL = os.environ["SERVER_URL"]
TO = {"headers": {"Authorization": f"Bearer {os.environ['SERVER_KEY']}"}, "compression": Compression.Gzip}
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
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{URL}/v1/traces", **TO)))
tracer = spans.get_tracer("shop.cart", "2.0")
attributes = {"items": 3, "free": True, "price": 9.5, "names": ["a", "b"], "sizes": [1, 2], "ratios": [0.5], "flags": [True, False]}
with tracer.start_as_current_span("checkout", attributes=attributes) as checkout:
    checkout.add_event("paid", {"by": "card"})
    try:
        with tracer.start_as_current_span("GET /pay", kind=SpanKind.CLIENT, attributes={"http.request.method": "GET"}) as pay:
            raise ValueError("no money")
    except ValueError:
        pass
    checkout.set_status(Status(StatusCode.OK))
tracer.start_span("receipt", links=[Link(checkout.get_span_context())]).end()
tracer.start_span("late", start_time=time.time_ns() - 8 * 24 * 3600 * 10**9).end()
spans.shutdown()

delta = {Counter: AggregationTemporality.DELTA, Histogram: AggregationTemporality.DELTA}
exporter = OTLPMetricExporter(endpoint=f"{URL}/v1/metrics", preferred_temporality=delta, **TO)
metrics = MeterProvider(resource=RESOURCE, metric_readers=[PeriodicExportingMetricReader(exporter)])
meter = metrics.get_meter("shop.cart")
meter.create_counter("taps", unit="{tap}").add(7, {"screen": "cart"})
load = meter.create_histogram("load", unit="ms", explicit_bucket_boundaries_advisory=[10.0, 100.0])
for value in [4.0, 6.0, 50.0]:
    load.record(value)
metrics.shutdown()

logs = LoggerProvider(resource=RESOURCE)
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{URL}/v1/logs", **TO)))
logger = logging.getLogger("shop")
logger.addHandler(LoggingHandler(logger_provider=logs))
logger.warning("nearly empty")
try:
    raise KeyError("cart")
except KeyError:
    logger.exception("no cart")
logs.shutdown()
