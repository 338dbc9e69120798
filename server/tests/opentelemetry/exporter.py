"""Sends spans, log records and metrics with OpenTelemetry's exporters for Python, as the environment says."""

import logging
import os
import time

from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

spans = TracerProvider()
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
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

metrics = MeterProvider(metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())])
meter = metrics.get_meter("shop.cart")
meter.create_counter("taps", unit="{tap}").add(7, {"screen": "cart"})
load = meter.create_histogram("load", unit="ms", explicit_bucket_boundaries_advisory=[10.0, 100.0])
for value in [4.0, 6.0, 50.0]:
    load.record(value)
metrics.shutdown()

logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
logger = logging.getLogger("shop")
logger.addHandler(LoggingHandler(logger_provider=logs))
logger.warning("nearly empty")
try:
    raise KeyError("cart")
except KeyError:
    logger.exception("no cart")
logs.shutdown()
