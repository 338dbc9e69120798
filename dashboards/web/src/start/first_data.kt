import java.net.HttpURLConnection
import java.net.URI
import java.time.Duration
import java.time.Instant
import java.util.UUID

// On Android, call this on a background thread. The manifest needs the permission INTERNET.
fun main() {
    val start = Instant.now()
    Thread.sleep(40) // the code to measure
    val durationUs = Duration.between(start, Instant.now()).toNanos() / 1000
    val batch = """{
        "batch_id": "${UUID.randomUUID()}",
        "resource": {"app_id": "com.example.shop", "app_version": "4.12.0", "device_model": "Pixel 8",
            "install_id": "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"},
        "spans": [{"name": "checkout", "start": "$start", "duration_us": $durationUs,
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b9"}]
    }"""
    val request = URI("SERVER/v1/ingest").toURL().openConnection() as HttpURLConnection
    request.requestMethod = "POST"
    request.doOutput = true
    request.setRequestProperty("Authorization", "Bearer KEY")
    request.setRequestProperty("Content-Type", "application/json")
    request.outputStream.use { it.write(batch.toByteArray()) }
    val answer = if (request.responseCode < 400) request.inputStream else request.errorStream
    println("${request.responseCode} ${answer.bufferedReader().readText()}")
}
