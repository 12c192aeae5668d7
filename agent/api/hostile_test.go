package api_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// endless is a body of one byte again and again.
type endless struct{ of byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.of
	}
	return len(p), nil
}

// TestHostileRequests checks that requests made to exhaust the server are refused, each by
// its status, that the server keeps little of them, and that it answers others meanwhile.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		line := strings.NewReplacer("N", string(rune('0'+i)), "P", string(rune('0'+i-1)))
		_, _ = line.WriteString(&bomb, "aN: &aN [*aP,*aP,*aP,*aP,*aP,*aP,*aP,*aP,*aP]\n")
	}
	const yaml = "application/yaml"
	c.refused(c.hostile("PUT", configPath, bomb.String(), "Content-Type", yaml), 400, "YAML anchors are not read here")
	for kind, body := range map[string]string{
		"application/json": strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		yaml:               "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
	} {
		c.refused(c.hostile("PUT", configPath, body, "Content-Type", kind), 400, "error-message")
	}
	patch := `[{"op":"add","path":"/a","value":` + strings.Repeat("[", 100_000)
	c.refused(c.hostile("PATCH", configPath, patch, "Content-Type", "application/json-patch+json"), 400, "cannot read the JSON Patch")
	c.refused(c.hostile("GET", statePath+"?fields="+strings.Repeat("a/[", 10_000), ""), 400, "deeper than")

	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err := io.CopyN(zip, endless{' '}, 100<<20)
	if err = errors.Join(err, zip.Close()); err != nil {
		t.Fatal(err)
	}
	c.refused(c.hostile("PUT", configPath, zipped.String(), "Content-Encoding", "gzip"), 415, "send the body as it is")
	c.refused(c.hostile("GET", configPath, "", "X-Flood", strings.Repeat("x", 60_000)), 404, "")
	if flooded := c.raw("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Flood: " + strings.Repeat("x", 100_000) + "\r\n\r\n"); !strings.HasPrefix(flooded, "HTTP/1.1 431") {
		t.Errorf("a header of 100 kB is answered %.60q", flooded)
	}
	if flooded := c.raw("GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-Flood: "+strings.Repeat("x", 1000)+"\r\n", 2000) + "\r\n"); !strings.HasPrefix(flooded, "HTTP/1.1 431") {
		t.Errorf("2 MB of headers are answered %.60q", flooded)
	}
}

// hostile is call for requests too large to be checked against the OpenAPI text.
func (c *caller) hostile(method, path, body string, headers ...string) answer {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.dev.Endpoint+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.dev.Token)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: string(text)}
}

// refused checks an answer, which must be short whatever the request was.
func (c *caller) refused(a answer, status int, part string) {
	c.t.Helper()
	if a.status != status || !strings.Contains(a.body, part) || len(a.body) > 64<<10 {
		c.t.Errorf("answered %d with %d bytes: %.300s; want %d with %s", a.status, len(a.body), a.body, status, part)
	}
}

// raw sends bytes and returns the beginning of the answer.
func (c *caller) raw(text string) string {
	c.t.Helper()
	connection, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", strings.TrimPrefix(c.dev.Endpoint, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	_, _ = io.WriteString(connection, text) // The server may close before the end.
	begin := make([]byte, 100)
	n, _ := io.ReadFull(connection, begin)
	return string(begin[:n])
}

// TestHugeBody checks that a body of a gigabyte is refused after a megabyte, and that the
// server keeps none of it.
func TestHugeBody(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.dev.Endpoint+configPath, io.LimitReader(endless{' '}, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.dev.Token)
	request.Header.Set("Expect", "100-continue")
	begun := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a body of 1 GiB is answered %s", response.Status)
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("1 GiB refused in %s (%v); the heap of the whole process is %d MiB", time.Since(begun).Round(time.Millisecond), err, memory.HeapAlloc>>20)
	c.want(c.call("GET", configPath, ""), 404, "")
}
