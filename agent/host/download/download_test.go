package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// server serves one file. Its fields may change between requests.
type server struct {
	mu      sync.Mutex
	content []byte
	tag     string
	// breakAt is after how many bytes an answer breaks off; negative: never.
	breakAt int
	// handle answers in place of all of the above.
	handle http.HandlerFunc
	asked  []http.Header
	*httptest.Server
}

func serve(t *testing.T, size int) *server {
	t.Helper()
	s := &server{content: contentOf(1, size), tag: `"1"`, breakAt: -1}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// contentOf returns the bytes of a version of the file; no two are alike anywhere.
func contentOf(version byte, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = version*64 + byte(i%61)
	}
	return data
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Header.Clone())
	if s.handle != nil {
		s.handle(w, r)
		return
	}
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	if s.breakAt >= 0 {
		w = &breaking{ResponseWriter: w, left: s.breakAt}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
}

// breaking breaks the connection after some bytes.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	n, err := b.ResponseWriter.Write(p[:min(b.left, len(p))])
	if b.left -= n; b.left == 0 && err == nil {
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func open(t *testing.T, o Options) *Folder {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func quiet(int64, int64) {}

func (s *server) fetch(t *testing.T, f *Folder) (File, error) {
	t.Helper()
	return f.Fetch(t.Context(), s.URL+"/system.raucb", Content{}, quiet)
}

func (s *server) mustFetch(t *testing.T, f *Folder) File {
	t.Helper()
	file, err := s.fetch(t, f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file.Path); err != nil || !bytes.Equal(got, s.content) || file.Size != int64(len(got)) {
		t.Fatalf("the file has %d bytes (%v) and is said to have %d; the server has %d, or others", len(got), err, file.Size, len(s.content))
	}
	return file
}

// TestFetch checks that a file is fetched once, and anew when it has changed.
func TestFetch(t *testing.T) {
	t.Parallel()
	s, f := serve(t, 3<<20), open(t, Options{})
	if _, ok := f.Kept(s.URL + "/system.raucb"); ok {
		t.Error("an empty folder keeps a file")
	}
	var told []int64
	if _, err := f.Fetch(t.Context(), s.URL+"/system.raucb?token=x", Content{}, func(done, total int64) {
		if total != 3<<20 {
			t.Errorf("the total is told as %d", total)
		}
		told = append(told, done)
	}); err != nil || len(told) < 3 || told[len(told)-1] != 3<<20 {
		t.Errorf("progress %v, error %v", told, err)
	}
	if file := s.mustFetch(t, f); file.Fetched != 0 {
		t.Errorf("an unchanged file was fetched again: %d bytes", file.Fetched)
	}
	if file, ok := f.Kept(s.URL + "/system.raucb"); !ok || file.Size != 3<<20 {
		t.Errorf("the folder keeps %+v, %t", file, ok)
	}
	if _, ok := f.Kept(s.URL + "/other.raucb"); ok {
		t.Error("the folder keeps a file of another address")
	}
	s.content, s.tag = contentOf(2, 1000), `"2"`
	if file := s.mustFetch(t, f); file.Fetched != 1000 {
		t.Errorf("a changed file was not fetched: %d bytes", file.Fetched)
	}
}

// TestResume checks that a download that broke off goes on where it was, as long as
// the content is the same.
func TestResume(t *testing.T) {
	t.Parallel()
	s, f := serve(t, 5000), open(t, Options{})
	s.breakAt = 2000
	if _, err := s.fetch(t, f); strategy.ClassOf(err) != message.Transient {
		t.Fatalf("a broken download has the error %v of class %q", err, strategy.ClassOf(err))
	}
	if _, ok := f.Kept(s.URL + "/system.raucb"); ok {
		t.Error("a part counts as the file")
	}
	s.breakAt = -1
	if file := s.mustFetch(t, f); file.Fetched != 3000 {
		t.Errorf("%d bytes were fetched, not the 3000 that were missing", file.Fetched)
	}
	s.content, s.tag, s.breakAt = contentOf(2, 5000), `"2"`, 100
	if _, err := s.fetch(t, f); err == nil {
		t.Fatal("a broken download has no error")
	}
	s.content, s.tag, s.breakAt = contentOf(3, 5000), `"3"`, -1
	if file := s.mustFetch(t, f); file.Fetched != 5000 {
		t.Errorf("%d bytes of a new content were fetched, not 5000", file.Fetched)
	}
}

// TestNoValidator checks that a part is never continued when nothing tells the
// contents apart.
func TestNoValidator(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"", `W/"1"`} {
		s, f := serve(t, 5000), open(t, Options{})
		s.tag, s.breakAt = tag, 2000
		if _, err := s.fetch(t, f); err == nil {
			t.Fatal("a broken download has no error")
		}
		s.content, s.breakAt = contentOf(2, 5000), -1
		if file := s.mustFetch(t, f); file.Fetched != 5000 {
			t.Errorf("with the tag %q %d bytes were fetched, not 5000", tag, file.Fetched)
		}
	}
}

// TestOddServer checks that a server that does not do what its head says costs no more
// than another request.
func TestOddServer(t *testing.T) {
	t.Parallel()
	whole := func(w http.ResponseWriter) { w.Header().Set("ETag", `"1"`) }
	for name, odd := range map[string]http.HandlerFunc{
		"ignores ranges": func(http.ResponseWriter, *http.Request) {},
		"has another part": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-4999/5000")
			w.WriteHeader(http.StatusPartialContent)
		},
		"ends early": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 2000-2999/5000")
			w.WriteHeader(http.StatusPartialContent)
		},
		"has another size": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 2000-5999/6000")
			w.WriteHeader(http.StatusPartialContent)
		},
		"has another tag": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"9"`)
			w.Header().Set("Content-Range", "bytes 2000-4999/5000")
			w.WriteHeader(http.StatusPartialContent)
		},
		"has no such range": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := serve(t, 5000), open(t, Options{})
			s.breakAt = 2000
			if _, err := s.fetch(t, f); err == nil {
				t.Fatal("a broken download has no error")
			}
			s.handle = func(w http.ResponseWriter, r *http.Request) {
				whole(w)
				if r.Header.Get("Range") != "" {
					odd(w, r)
				}
				_, _ = w.Write(s.content)
			}
			if file := s.mustFetch(t, f); file.Fetched != 5000 {
				t.Errorf("%d bytes were fetched, not 5000", file.Fetched)
			}
		})
	}
}

// TestRefusals checks the class and text of each failure, and that no text has the
// query of an address, which may be a token.
func TestRefusals(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		options Options
		handle  http.HandlerFunc
		want    Content
		class   message.Class
		text    string
	}{
		"not there":     {handle: status(404), class: message.Artifact, text: "404 Not Found: the file is not there"},
		"not allowed":   {handle: status(403), class: message.Repository, text: "403 Forbidden"},
		"busy":          {handle: status(429), class: message.Transient, text: "429 Too Many Requests"},
		"broken":        {handle: status(503), class: message.Transient, text: "503 Service Unavailable"},
		"odd part":      {handle: status(206), class: message.Repository, text: "206"},
		"odd unchanged": {handle: status(304), class: message.Repository, text: "304"},
		"too large":     {options: Options{Limit: 999}, class: message.Artifact, text: "it has 1000 bytes; at most 999 are allowed"},
		"endless": {
			options: Options{Limit: 999}, class: message.Artifact, text: "more than the 999 bytes",
			handle: func(w http.ResponseWriter, _ *http.Request) {
				for range 3 {
					_, _ = w.Write(make([]byte, 500))
					_ = http.NewResponseController(w).Flush()
				}
			},
		},
		"coded": {
			class: message.Artifact, text: `content coding "gzip"`,
			handle: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") },
		},
		"no room": {
			class: message.Space, text: "needs 33555432 bytes in ",
			options: Options{statfs: func(_ string, s *syscall.Statfs_t) error {
				s.Bavail, s.Bsize = 33555431, 1
				return nil
			}},
		},
		"other sum":  {want: Content{SHA256: strings.Repeat("0", 64)}, class: message.Artifact, text: "its SHA-256 is "},
		"other size": {want: Content{Size: 999}, class: message.Artifact, text: "it has 1000 bytes, not 999"},
		"other size, told at the end": {
			want: Content{Size: 999}, class: message.Artifact, text: "it has 1000 bytes, not 999",
			handle: func(w http.ResponseWriter, _ *http.Request) {
				_ = http.NewResponseController(w).Flush()
				_, _ = w.Write(make([]byte, 1000))
			},
		},
		"stalled": {
			options: Options{idle: 50 * time.Millisecond}, class: message.Transient, text: "the server has sent nothing for 50ms",
			handle: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write(make([]byte, 10))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
		},
		"elsewhere": {
			class: message.Transient, text: "would be fetched without encryption",
			handle: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://192.0.2.1/system.raucb?token=hush", http.StatusFound)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := serve(t, 1000), open(t, c.options)
			s.handle = c.handle
			file, err := f.Fetch(t.Context(), s.URL+"/system.raucb?token=hush", c.want, quiet)
			if err == nil || strategy.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%+v, class %q, error %v; want class %q and the text %q", file, strategy.ClassOf(err), err, c.class, c.text)
			}
			if strings.Contains(fmt.Sprint(err), "hush") {
				t.Errorf("the error shows a token: %v", err)
			}
			if _, ok := f.Kept(s.URL + "/system.raucb"); ok {
				t.Error("the file that was refused is kept")
			}
		})
	}
}

// TestContent checks that checksum and size are those of the file.
func TestContent(t *testing.T) {
	t.Parallel()
	s, f := serve(t, 1000), open(t, Options{})
	sum := sha256.Sum256(s.content)
	if _, err := f.Fetch(t.Context(), s.URL, Content{SHA256: hex.EncodeToString(sum[:]), Size: 1000}, quiet); err != nil {
		t.Error(err)
	}
}

// TestAddresses checks which addresses may be asked.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://updates.example.org/a.raucb":       "",
		"http://127.0.0.1:8080/a.raucb":             "",
		"http://[::1]:8080/a.raucb":                 "",
		"http://localhost/a.raucb":                  "",
		"http://updates.example.org/a.raucb":        "without encryption; use https, or allow http",
		"http://localhost.example.org/a":            "without encryption",
		"https://joe:hush@updates.example.org/a":    "has a user or password",
		"ftp://updates.example.org/a":               `has the scheme "ftp"; use https`,
		"updates.example.org/a":                     "names no server",
		"https://updates.example.org/%zz?x=hush":    "is not a URL",
		"https://updates.example.org:port/?x=hush&": "is not a URL",
	} {
		err := CheckAddress(address, false)
		if (want == "") != (err == nil) || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(fmt.Sprint(err), "hush") {
			t.Errorf("%s: %v; want %q", address, err, want)
		}
	}
	if err := CheckAddress("http://updates.example.org/a.raucb", true); err != nil {
		t.Errorf("http is refused though it is allowed: %v", err)
	}
}

// TestCertificate checks that a server is believed by the given certificate alone.
func TestCertificate(t *testing.T) {
	t.Parallel()
	s := &server{content: contentOf(1, 1000), breakAt: -1}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	s.Config.ErrorLog = nil
	if _, err := s.fetch(t, open(t, Options{})); strategy.ClassOf(err) != message.Repository {
		t.Errorf("an unknown certificate has the error %v of class %q", err, strategy.ClassOf(err))
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustFetch(t, open(t, Options{CAFile: file}))
	if _, err := Open(Options{Dir: t.TempDir(), CAFile: os.DevNull}); err == nil || !strings.Contains(err.Error(), "has no certificate; it needs PEM") {
		t.Errorf("a file without certificates has the error %v", err)
	}
}

// TestStopped checks that the end of the context is no failure of the server.
func TestStopped(t *testing.T) {
	t.Parallel()
	s, f := serve(t, 1000), open(t, Options{})
	ctx, stop := context.WithCancel(t.Context())
	s.handle = func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	}
	if _, err := f.Fetch(ctx, s.URL, Content{}, quiet); !errors.Is(err, context.Canceled) || strategy.ClassOf(err) != "" {
		t.Errorf("error %v of class %q", err, strategy.ClassOf(err))
	}
}

// TestAnyBreak checks that, whatever breaks and changes, a complete file is the one
// that the server has. A power cut loses all that was not synced, and puts other
// bytes in its place.
func TestAnyBreak(t *testing.T) {
	t.Parallel()
	s := serve(t, 0)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // one for each history
		if err != nil {
			rt.Fatal(err)
		}
		var saved saved
		f := open(t, Options{Dir: dir, syncEvery: 512, synced: func() { saved = save(rt, dir) }})
		saved = save(rt, dir)
		version := byte(1)
		for range rapid.IntRange(1, 8).Draw(rt, "fetches") {
			if rapid.IntRange(0, 3).Draw(rt, "changes") == 0 {
				version++
			}
			size := rapid.IntRange(0, 4000).Draw(rt, "size")
			s.mu.Lock()
			s.tag, s.content, s.breakAt = fmt.Sprintf(`"%d-%d"`, version, size), contentOf(version, size), rapid.IntRange(-1, 4000).Draw(rt, "break")
			content := s.content
			s.mu.Unlock()
			file, err := f.Fetch(t.Context(), s.URL, Content{}, quiet)
			if err == nil {
				if got, err := os.ReadFile(file.Path); err != nil || !bytes.Equal(got, content) {
					rt.Fatalf("the file is not what the server has (%v)", err)
				}
				saved = save(rt, dir)
			} else if rapid.Bool().Draw(rt, "cut") {
				saved.restore(rt, dir)
			}
		}
	})
}

// saved is what a power cut leaves of a folder.
type saved struct{ record, content []byte }

func save(t *rapid.T, dir string) (s saved) {
	var err1, err2 error
	s.record, err1 = os.ReadFile(filepath.Join(dir, "download.json"))
	s.content, err2 = os.ReadFile(filepath.Join(dir, "content"))
	for _, err := range []error{err1, err2} {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return s
}

func (s saved) restore(t *rapid.T, dir string) {
	for name, data := range map[string][]byte{"download.json": s.record, "content": s.content} {
		path := filepath.Join(dir, name)
		if data == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			continue
		}
		if name == "content" {
			data = append(data, make([]byte, 100)...)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoTrustBeyondSync checks that bytes that were not synced are fetched again.
func TestNoTrustBeyondSync(t *testing.T) {
	t.Parallel()
	s, f := serve(t, 5000), open(t, Options{})
	s.breakAt = 2000
	if _, err := s.fetch(t, f); err == nil {
		t.Fatal("a broken download has no error")
	}
	file, err := os.OpenFile(f.content(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(file, strings.Repeat("\x00", 700)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s.breakAt = -1
	if file := s.mustFetch(t, f); file.Fetched != 3000 {
		t.Errorf("%d bytes were fetched, not 3000", file.Fetched)
	}
}

// FuzzDecide checks that no head of an answer makes the download go on with bytes
// that are not those of the record, or at another place than its end.
func FuzzDecide(f *testing.F) {
	f.Add(206, "bytes 100-199/200", `"a"`, `"a"`, int64(100), int64(200), false)
	f.Add(206, "bytes 0-199/200", `"a"`, `"a"`, int64(100), int64(200), false)
	f.Add(206, "bytes 100-199/*", "", `"a"`, int64(100), int64(-1), false)
	f.Add(304, "", `"a"`, `"a"`, int64(200), int64(200), true)
	f.Add(416, "bytes */200", "", `"a"`, int64(200), int64(-1), false)
	f.Add(200, "", `W/"a"`, `"a"`, int64(200), int64(200), true)
	f.Fuzz(func(t *testing.T, status int, contentRange, tag, validator string, synced, size int64, complete bool) {
		kept := record{Address: "a", Validator: validator, Size: size, Synced: synced, Complete: complete}
		h := http.Header{}
		h.Set("Content-Range", contentRange)
		h.Set("ETag", tag)
		next, err := decide(kept, "b", status, h, 10)
		switch {
		case err != nil:
			return
		case next.do == use && !complete:
			t.Error("a part is used as the file")
		case next.do == fill && next.record.Synced != 0 && (next.record.Synced != synced || complete || tag != "" && strings.HasPrefix(tag, `"`) && len(tag) > 1 && tag[len(tag)-1] == '"' && tag != validator || size >= 0 && next.record.Size != size || next.record.Size <= synced):
			t.Errorf("%+v is continued as %+v", kept, next.record)
		}
	})
}

// TestValidator checks which heads tell a content from others.
func TestValidator(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		tag      string
		modified time.Duration
		want     bool
	}{
		"tag":                  {tag: `"a"`, want: true},
		"empty tag":            {tag: `""`, want: true},
		"weak tag":             {tag: `W/"a"`},
		"no tag":               {tag: `"`},
		"changed long ago":     {modified: -time.Hour, want: true},
		"changed a moment ago": {modified: -time.Second},
		"changed in future":    {modified: time.Hour},
	} {
		h := http.Header{}
		h.Set("Date", now.Format(http.TimeFormat))
		if c.tag != "" {
			h.Set("ETag", c.tag)
		}
		if c.modified != 0 {
			h.Set("Last-Modified", now.Add(c.modified).Format(http.TimeFormat))
		}
		if got := validator(h); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
