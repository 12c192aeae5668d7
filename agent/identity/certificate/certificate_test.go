package certificate_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/certificate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
)

const day = 24 * time.Hour

var now = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

// listener is a certificate with its files and its log.
type listener struct {
	t         *testing.T
	cert, key string
	log       bytes.Buffer
	pair      *certificate.Pair
}

func newListener(t *testing.T, left time.Duration) *listener {
	t.Helper()
	dir := t.TempDir()
	l := &listener{t: t, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	l.write(certtest.Make(t, "first", now.Add(-day), now.Add(left)))
	return l
}

func (l *listener) write(p certtest.Pair) {
	l.t.Helper()
	p.Write(l.t, l.cert, l.key)
}

func (l *listener) load() error {
	var err error
	l.pair, err = certificate.Load("api", l.cert, l.key, now, slog.New(slog.NewTextHandler(&l.log, nil)))
	return err
}

// presents is the name in the certificate that a client is shown.
func (l *listener) presents() string {
	l.t.Helper()
	c, err := l.pair.Get(&tls.ClientHelloInfo{})
	if err != nil {
		l.t.Fatal(err)
	}
	return c.Leaf.Subject.CommonName
}

// logged returns the log so far and empties it.
func (l *listener) logged() string {
	defer l.log.Reset()
	return l.log.String()
}

// TestLoad checks what is refused at the start, and that the error names the file
// and the date.
func TestLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to time.Duration
		want     string
	}{
		"valid":         {-day, 90 * day, ""},
		"expired":       {-90 * day, -day, "cert.pem expired on 2026-11-21 01:00 UTC; renew it"},
		"not valid yet": {day, 90 * day, "cert.pem is not valid before 2026-11-23 01:00 UTC; compare that with the clock of this machine"},
	} {
		l := newListener(t, 0)
		l.write(certtest.Make(t, name, now.Add(c.from), now.Add(c.to)))
		err := l.load()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := newListener(t, 90*day)
	certtest.Make(t, "other", now, now.Add(day)).Write(t, l.cert, filepath.Join(t.TempDir(), "unused"))
	if err := l.load(); err == nil || !strings.Contains(err.Error(), "are not a certificate and its key") {
		t.Errorf("the key of another certificate: %v", err)
	}
	if err := os.Remove(l.key); err != nil {
		t.Fatal(err)
	}
	if err := l.load(); err == nil || !strings.Contains(err.Error(), l.key) {
		t.Errorf("no key: %v", err)
	}
}

// TestLook renews a certificate as people do, one file after the other, and puts
// in its place what must not be presented.
func TestLook(t *testing.T) {
	t.Parallel()
	l := newListener(t, 90*day)
	if err := l.load(); err != nil {
		t.Fatal(err)
	}
	look := func(row, presents, logs string) {
		t.Helper()
		l.pair.Look(now)
		if got := l.presents(); got != presents {
			t.Errorf("%s: it presents %s, want %s", row, got, presents)
		}
		if got := l.logged(); logs == "" && got != "" || !strings.Contains(got, logs) {
			t.Errorf("%s: it logs %q, want %q", row, got, logs)
		}
	}
	look("nothing changed", "first", "")
	second := certtest.Make(t, "second", now.Add(-day), now.Add(180*day))
	second.Write(t, l.cert, filepath.Join(t.TempDir(), "later"))
	look("half-way", "first", "")
	second.Write(t, l.cert, l.key)
	look("renewed", "second", "took up the renewed certificate")
	if got := l.pair.NotAfter(); !got.Equal(now.Add(180 * day)) {
		t.Errorf("it ends on %s", got)
	}
	for name, bad := range map[string]certtest.Pair{
		"expired on 2026-11-21":  certtest.Make(t, "expired", now.Add(-90*day), now.Add(-day)),
		"is not valid before":    certtest.Make(t, "early", now.Add(day), now.Add(90*day)),
		"are not a certificate ": {Cert: []byte("nonsense"), Key: []byte("nonsense")},
	} {
		l.write(bad)
		look(name, "second", "")
		look(name, "second", name)
		look(name, "second", "")
	}
	if err := os.Remove(l.cert); err != nil {
		t.Fatal(err)
	}
	look("removed", "second", "")
	look("removed", "second", "no such file")
	l.write(certtest.Make(t, "third", now.Add(-day), now.Add(180*day)))
	look("renewed again", "third", "took up the renewed certificate")
}

// TestRemind checks on which days the end of a certificate is logged, and how.
func TestRemind(t *testing.T) {
	t.Parallel()
	l := newListener(t, 32*day)
	if err := l.load(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for after := time.Duration(0); after < 34*day; after += time.Hour {
		l.pair.Look(now.Add(after))
		for line := range strings.Lines(l.logged()) {
			level, _, _ := strings.Cut(line[strings.Index(line, "level="):], " ")
			_, left, _ := strings.Cut(line, "days-left=")
			got = append(got, fmt.Sprintf("day %d: %s %s", after/day, level, strings.TrimSpace(left)))
		}
	}
	var want []string
	for d := 2; d < 34; d++ {
		level := "WARN"
		if 32-d <= 7 {
			level = "ERROR"
		}
		want = append(want, fmt.Sprintf("day %d: level=%s %d", d, level, 32-d))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it is told\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	l.pair.Look(now.Add(20 * day))
	if l.logged() == "" {
		t.Error("a clock that was set back silences it")
	}
}

// TestDaysLeft checks the days around an end.
func TestDaysLeft(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]int{
		0: 0, time.Hour: 0, day: 1, 30*day - time.Second: 29, -time.Second: -1, -day: -1, -day - time.Second: -2,
	} {
		if got := certificate.DaysLeft(now.Add(left), now); got != want {
			t.Errorf("%s before the end it says %d days, want %d", left, got, want)
		}
	}
}

// TestCheckTrusted checks which files of certificates to trust are good for
// nothing.
func TestCheckTrusted(t *testing.T) {
	t.Parallel()
	old, good := certtest.Make(t, "old", now.Add(-90*day), now.Add(-day)), certtest.Make(t, "good", now.Add(-day), now.Add(day))
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"one":            {good.Cert, ""},
		"expired":        {old.Cert, "expired on 2026-11-21 01:00 UTC"},
		"old and new":    {append(bytes.Clone(old.Cert), good.Cert...), ""},
		"a key":          {good.Key, "holds no certificate"},
		"nonsense":       {[]byte("nonsense"), "holds no certificate"},
		"a damaged one":  {[]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "malformed"},
		"after a key":    {append(bytes.Clone(good.Key), good.Cert...), ""},
		"after nonsense": {append([]byte("nonsense\n"), good.Cert...), ""},
	} {
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		err := certificate.CheckTrusted(file, now)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWatch checks that a renewed certificate is presented soon after its files were
// replaced: in place, or as Kubernetes replaces a mounted secret, by one link.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, mounted := range map[string]bool{"files": false, "a mounted secret": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if mounted {
				link(t, dir)
			}
			l := &listener{t: t, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
			put := func(name string) {
				pair := certtest.Make(t, name, time.Now().Add(-day), time.Now().Add(90*day))
				if !mounted {
					l.write(pair)
					return
				}
				version := filepath.Join(dir, "of-"+name)
				if err := os.Mkdir(version, 0o700); err != nil {
					t.Fatal(err)
				}
				pair.Write(t, filepath.Join(version, "cert.pem"), filepath.Join(version, "key.pem"))
				next := filepath.Join(dir, "next")
				if err := errors.Join(os.Symlink(version, next), os.Rename(next, filepath.Join(dir, "data"))); err != nil {
					t.Fatal(err)
				}
			}
			put("first")
			var err error
			if l.pair, err = certificate.Load("api", l.cert, l.key, time.Now(), slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); l.pair.Watch(ctx) }()
			time.Sleep(2 * time.Second) // The watch has begun, and has looked.
			put("second")
			for begun := time.Now(); l.presents() != "second"; time.Sleep(10 * time.Millisecond) {
				if time.Since(begun) > 30*time.Second {
					t.Fatal("the renewed certificate is not presented")
				}
			}
			stop()
			<-ended
		})
	}
}

// link makes the files of a folder links through a link, as in a mounted secret.
func link(t *testing.T, dir string) {
	t.Helper()
	for _, file := range []string{"cert.pem", "key.pem"} {
		if err := os.Symlink(filepath.Join("data", file), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
}
