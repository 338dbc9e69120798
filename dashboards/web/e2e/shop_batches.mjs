// The batches of six devices of a made-up shop: some events of each signal, one invalid event, and memory that grows on one page.

const UPTIMES_MS = [30_000, 120_000, 600_000, 1_800_000];
export const SLOW_SPAN = 'checkout';

function uuid(last) {
  return `5c0c7e0e-6c6b-4a3e-8a0e-${String(last).padStart(12, '0')}`;
}

function hex(digits, number) {
  return number.toString(16).padStart(digits, '0');
}

/** A checkout of 900 ms: two methods on the main thread, one of which waits for a request on another thread, and a constructor. */
function trace(device, at) {
  const trace_id = hex(32, 1000 + device);
  const span = (place, parent, name, kind, offset, ms, more = {}) => ({
    trace_id,
    span_id: hex(16, device * 100 + place),
    parent_span_id: parent === null ? null : hex(16, device * 100 + parent),
    name,
    kind,
    start: at(120_000 - offset),
    duration_us: ms * 1000 + device * 100,
    thread: 'main',
    on_main_thread: true,
    status: 'ok',
    page: 'CheckoutActivity',
    network: 'wifi',
    ...more,
  });
  const worker = { thread: 'OkHttp', on_main_thread: false };
  const code = { class: 'com.example.shop.Cart', function: 'pay', file: 'Cart.kt', line: 42 };
  return [
    span(1, null, SLOW_SPAN, 'manual', 0, 900, {
      attributes: { items: '3' },
      events: [{ time: at(119_900), name: 'validated' }],
    }),
    span(2, 1, 'com.example.shop.cart.Cart.total(List)', 'method', 20, 300, { code }),
    span(3, 1, 'com.example.shop.cart.Cart.pay(Card)', 'method', 350, 500),
    span(4, 3, 'POST /checkout/pay', 'manual', 400, 320, {
      ...worker,
      status: device % 2 ? 'error' : 'ok',
      attributes: {
        'server.address': 'api.example.com',
        'url.path': '/checkout/pay',
        'http.response.body.size': '120000',
      },
    }),
    span(5, 3, 'com.example.shop.pay.PayService', 'init', 380, 15),
  ];
}

/** One batch per device. */
export function batches(now) {
  return Array.from({ length: 6 }, (_, device) => {
    const at = (agoMs) => new Date(now - agoMs).toISOString();
    const day = at(0).slice(0, 10);
    const traffic = (source, network, rx_bytes) => ({
      day,
      source,
      network,
      tx_bytes: 20_000,
      rx_bytes,
      requests: 20,
      failed_requests: device,
    });
    return {
      batch_id: uuid(`9${device}`),
      sent_at: at(0),
      resource: {
        app_id: 'com.example.shop',
        app_version: device < 1 ? '4.11.0' : '4.12.0',
        build: 41200,
        os_name: 'android',
        os_version: '15',
        device_model: 'Pixel 8',
        device_manufacturer: 'Google',
        device_class: 'high',
        refresh_hz: 120,
        locale: 'de-DE',
        install_id: uuid(device + 1),
        // Two devices belong to one user. The last two have no user.
        user_id: device < 2 ? 'user-both' : device < 4 ? `user-${device}` : '',
        mode: device === 3 ? 'test' : 'production',
        sdk_name: 'unjank',
        sdk_version: '0.1.0',
      },
      session_id: uuid(`8${device}`),
      spans: [...trace(device, at), { ...trace(device, at)[0], span_id: hex(16, 7), duration_us: -1 }],
      traffic: [traffic('api', 'wifi', 1e6 * (device + 1)), traffic('cdn', 'cellular_4g', 5e6)],
      metrics: UPTIMES_MS.map((uptime_ms, index) => ({
        name: 'memory_used_bytes',
        time: at(60_000),
        value: 2e8 * (1 + index / 4),
        min: 1.9e8,
        max: 4e8,
        count: 20,
        page: 'ProductActivity',
        uptime_ms,
      })),
      app_starts: [{ kind: 'cold', start: at(200_000), duration_ms: 1400, phases: [{ name: 'di', duration_ms: 210 }] }],
      recompositions: [
        {
          function: 'CartList',
          page: 'CartActivity',
          start: at(90_000),
          window_ms: 10_000,
          count: 58,
          cause: 'CartState.items',
        },
      ],
      sdk_health: {
        dropped: [{ signal: 'spans', reason: 'queue_full', count: 12 }],
        overhead_us: 8400,
        queue_bytes: 2048,
      },
    };
  });
}
