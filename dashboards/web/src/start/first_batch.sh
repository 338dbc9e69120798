curl -sS SERVER/v1/ingest \
  -H 'Authorization: Bearer KEY' \
  -H 'Content-Type: application/json' -d '{
  "batch_id": "'$(uuidgen || cat /proc/sys/kernel/random/uuid)'",
  "resource": {"app_id": "com.example.shop", "app_version": "4.12.0", "device_model": "Pixel 8",
    "install_id": "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"},
  "spans": [{"name": "checkout", "start": "'$(date -u +%FT%TZ)'", "duration_us": 41250,
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}],
  "app_starts": [{"kind": "cold", "start": "'$(date -u +%FT%TZ)'", "duration_ms": 640}]
}'
