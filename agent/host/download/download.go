// Package download fetches one file at a time by HTTP to a folder, for strategies
// whose upgrade is a single large file.
//
// A download that breaks off is resumed where it was on disk, and a file that has not
// changed is not fetched again. Nothing is trusted after a power cut but what was
// synced before: a record beside the file says how many bytes those are, and of which
// content.
//
// The package never interprets the file. Who uses it checks a signature.
package download

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const (
	// DefaultLimit is the largest size of a file.
	DefaultLimit = 16 << 30
	// DefaultReserve is what a download leaves free on the file system.
	DefaultReserve = 32 << 20
	// defaultIdle is how long the server may send nothing.
	defaultIdle = time.Minute
	// syncEvery is how many bytes a power cut can cost.
	syncEvery = 32 << 20
	// chunk is how many bytes are fetched between two reports of progress.
	chunk = 1 << 20
	// maxRedirects is how often a server may send the client elsewhere.
	maxRedirects = 10
)

// Options configure a Folder.
type Options struct {
	// Dir is the folder of the file; Open creates it.
	Dir string
	// CAFile has the certificates to trust, PEM; the system's if it is empty.
	CAFile string
	// Plain allows http: to any machine. Without it only the own machine may be asked
	// so.
	Plain bool
	// Limit is the largest size of a file; zero means DefaultLimit.
	Limit int64
	// Reserve is what stays free on the file system; zero means DefaultReserve.
	Reserve int64

	// idle is defaultIdle if zero.
	idle time.Duration
	// statfs is syscall.Statfs if nil.
	statfs func(path string, into *syscall.Statfs_t) error
	// syncEvery is the constant if zero.
	syncEvery int64
	// synced is called after each sync of the file, before the record says so.
	synced func()
}

// Folder is a folder with one downloaded file.
type Folder struct {
	o      Options
	client *http.Client
}

// File is a downloaded file.
type File struct {
	Path string
	Size int64
	// Fetched is how many bytes were fetched for it now; 0 if it was there.
	Fetched int64
}

// Open creates the folder and reads the certificates.
func Open(o Options) (*Folder, error) {
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	if o.idle == 0 {
		o.idle = defaultIdle
	}
	if o.syncEvery == 0 {
		o.syncEvery = syncEvery
	}
	if o.statfs == nil {
		o.statfs = syscall.Statfs
	}
	if o.synced == nil {
		o.synced = func() {}
	}
	if o.Limit < 0 || o.Reserve < 0 {
		return nil, fmt.Errorf("cannot download: largest size %d and reserve %d must not be negative", o.Limit, o.Reserve)
	}
	trusted, err := trustedBy(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot download: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot download: %w", err)
	}
	f := &Folder{o: o}
	f.client = &http.Client{
		// The file is what the server has, byte for byte: no content coding.
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true,
			DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: o.idle,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted},
		},
		CheckRedirect: f.redirect,
	}
	return f, nil
}

func trustedBy(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate; it needs PEM", file)
	}
	return pool, nil
}

// CheckAddress returns an error for an address that may not be fetched from.
func CheckAddress(address string, plain bool) error {
	_, err := parseAddress(address, plain)
	return err
}

func parseAddress(address string, plain bool) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse shows the whole address, which may have a token.
		return nil, errors.New("the address of the file is not a URL; use one such as https://updates.example.org/system.raucb")
	}
	return u, checkURL(u, plain)
}

func checkURL(u *url.URL, plain bool) error {
	switch {
	case u.Host == "":
		return fmt.Errorf("%q names no server; use an address such as https://updates.example.org/system.raucb", shown(u))
	case u.User != nil:
		return fmt.Errorf("the address %s has a user or password, which would be shown in logs; leave it out", shown(u))
	case u.Scheme == "https", u.Scheme == "http" && (plain || loopback(u.Hostname())):
		return nil
	case u.Scheme == "http":
		return fmt.Errorf("%s would be fetched without encryption; use https, or allow http", shown(u))
	default:
		return fmt.Errorf("%s has the scheme %q; use https", shown(u), u.Scheme)
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// shown is an address without its query and user, which may be secrets.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (f *Folder) redirect(request *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("the server has redirected %d times", len(via))
	}
	if err := checkURL(request.URL, f.o.Plain); err != nil {
		return fmt.Errorf("the server redirects: %w", err)
	}
	return nil
}

// record says what the file beside it is.
type record struct {
	// Address is where the file is from, without its query.
	Address string `json:"address"`
	// Validator tells this content from others; empty if the server gives none that
	// does so byte for byte (RFC 9110 8.8.1).
	Validator string `json:"validator,omitempty"`
	// Size is the size of the whole content; negative if unknown.
	Size int64 `json:"size"`
	// Synced is how many of its bytes are on disk.
	Synced int64 `json:"synced"`
	// Complete is set once all of it is on disk.
	Complete bool `json:"complete,omitempty"`
}

func (f *Folder) content() string    { return filepath.Join(f.o.Dir, "content") }
func (f *Folder) recordFile() string { return filepath.Join(f.o.Dir, "download.json") }

// Kept returns the complete file that is there, without asking the server. ok is false
// if there is none from that address.
func (f *Folder) Kept(address string) (file File, ok bool) {
	u, err := parseAddress(address, f.o.Plain)
	if err != nil {
		return File{}, false
	}
	r := f.read()
	return File{Path: f.content(), Size: r.Size}, r.Complete && r.Address == shown(u)
}

// read returns what the folder has. A record that cannot be read, or a file that has
// fewer bytes than it says, is as good as none: the file is fetched again.
func (f *Folder) read() record {
	data, err := os.ReadFile(f.recordFile())
	var r record
	if err != nil || format.Download.Decode(data, &r) != nil || r.Synced < 0 {
		return record{}
	}
	info, err := os.Stat(f.content())
	if err != nil || info.Size() < r.Synced || r.Complete && (info.Size() != r.Size || r.Synced != r.Size) {
		return record{}
	}
	return r
}

func (f *Folder) write(r record) error {
	data, err := format.Download.Encode(r)
	if err != nil {
		return err
	}
	return durable.WriteFile(f.recordFile(), data, 0o600)
}

// Content is what a file must be.
type Content struct {
	// SHA256 is its checksum in hexadecimal; any if it is empty.
	SHA256 string
	// Size is its size in bytes; any if it is zero.
	Size int64
}

// checkSize returns an error for a size that the file must not have. It is negative if it is not known yet.
func (c Content) checkSize(size int64) error {
	if c.Size > 0 && size >= 0 && size != c.Size {
		return strategy.Fail(message.Artifact, fmt.Errorf("it has %d bytes, not %d", size, c.Size))
	}
	return nil
}

// Check returns an error for a file that is not what it must be.
func (c Content) Check(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := c.checkSize(info.Size()); err != nil || c.SHA256 == "" {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != c.SHA256 {
		return strategy.Fail(message.Artifact, fmt.Errorf("its SHA-256 is %s, not %s", got, c.SHA256))
	}
	return nil
}

// Fetch downloads a file unless the folder has it. A file that is not what it must be is dropped: it
// would never be fetched again. When Fetch returns without an error the file and its folder are synced.
func (f *Folder) Fetch(ctx context.Context, address string, want Content, progress func(done, total int64)) (File, error) {
	u, err := parseAddress(address, f.o.Plain)
	if err != nil {
		return File{}, strategy.Fail(message.Artifact, err)
	}
	file, err := f.fetch(ctx, u, want, progress)
	if err != nil {
		return File{}, fmt.Errorf("cannot download %s: %w", shown(u), err)
	}
	if err := want.Check(file.Path); err != nil {
		return File{}, fmt.Errorf("cannot use %s: %w", shown(u), errors.Join(err, f.Forget()))
	}
	return file, nil
}

func (f *Folder) fetch(ctx context.Context, u *url.URL, want Content, progress func(done, total int64)) (File, error) {
	kept := f.read()
	if kept.Address != shown(u) {
		kept = record{}
	}
	// A server that cannot go on with this content is asked once more, for all of it.
	for {
		got, again, err := f.attempt(ctx, u, kept, want, progress)
		if err != nil || !again {
			return got, err
		}
		kept = record{}
	}
}

// attempt asks the server once.
func (f *Folder) attempt(ctx context.Context, u *url.URL, kept record, want Content, progress func(done, total int64)) (file File, again bool, err error) {
	// The server may not send nothing for long; how long it takes is not our affair.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(f.o.idle, func() {
		cancel(fmt.Errorf("the server has sent nothing for %s", f.o.idle))
	})
	defer stalled.Stop()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return File{}, false, errors.New("the address cannot be asked for")
	}
	ask(request.Header, kept)
	response, err := f.client.Do(request)
	if err != nil {
		return File{}, false, unreachable(ctx, err)
	}
	defer response.Body.Close()
	next, err := decide(kept, shown(u), response.StatusCode, response.Header, response.ContentLength)
	if err != nil {
		return File{}, false, err
	}
	if next.do == use {
		return File{Path: f.content(), Size: kept.Size}, false, nil
	}
	if next.do == afresh {
		return File{}, true, nil
	}
	if err := errors.Join(want.checkSize(next.record.Size), f.room(next.record)); err != nil {
		return File{}, false, err
	}
	body := &watched{from: response.Body, alive: func() { stalled.Reset(f.o.idle) }}
	r, err := f.fill(next, body, progress)
	if err != nil {
		return File{}, false, broken(ctx, err)
	}
	return File{Path: f.content(), Size: r.Size, Fetched: r.Size - next.record.Synced}, false, nil
}

// watched tells of each read.
type watched struct {
	from  io.Reader
	alive func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.alive()
	return n, err
}

// room checks that the rest of a file has room.
func (f *Folder) room(r record) error {
	if r.Size > f.o.Limit {
		return strategy.Fail(message.Artifact, fmt.Errorf("it has %d bytes; at most %d are allowed", r.Size, f.o.Limit))
	}
	if r.Size < 0 {
		return nil // Each write finds out.
	}
	var s syscall.Statfs_t
	if err := f.o.statfs(f.o.Dir, &s); err != nil {
		return fmt.Errorf("cannot see how much room is in %s: %w", f.o.Dir, err)
	}
	free := int64(s.Bavail * uint64(s.Bsize))
	if r.Synced == 0 {
		// The file that is there goes when the new one comes.
		if info, err := os.Stat(f.content()); err == nil {
			free += info.Size()
		}
	}
	if want := r.Size - r.Synced + f.o.Reserve; free < want {
		return strategy.Fail(message.Space, fmt.Errorf("it needs %d bytes in %s, %d of them as reserve, and %d are free; make room there", want, f.o.Dir, f.o.Reserve, free))
	}
	return nil
}

// fill appends the body to the file.
func (f *Folder) fill(next decision, body io.Reader, progress func(done, total int64)) (r record, err error) {
	r = next.record
	file, err := f.begin(r)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	at := r.Synced
	for {
		n, err := io.CopyN(file, body, min(chunk, f.o.syncEvery, f.o.Limit-at+1))
		at += n
		if at > f.o.Limit {
			return r, strategy.Fail(message.Artifact, fmt.Errorf("it has more than the %d bytes that are allowed", f.o.Limit))
		}
		// What has come is kept, however the download ends.
		if err != nil || at-r.Synced >= f.o.syncEvery {
			if failed := f.sync(file, &r, at); failed != nil {
				return r, failed
			}
		}
		progress(at, r.Size)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r, err
		}
	}
	if r.Size >= 0 && at != r.Size {
		return r, fmt.Errorf("the server has sent %d of %d bytes: %w", at, r.Size, io.ErrUnexpectedEOF)
	}
	r.Size = at
	return r, f.finish(r)
}

// begin opens the file for appending at what is on disk. The old file goes before the
// record of the new one comes, so that the record never describes other bytes.
func (f *Folder) begin(r record) (file *os.File, err error) {
	if r.Synced == 0 {
		if err := os.Remove(f.content()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err := durable.SyncFolder(f.o.Dir); err != nil {
			return nil, err
		}
		if err := f.write(r); err != nil {
			return nil, err
		}
	}
	if file, err = os.OpenFile(f.content(), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	_, err = file.Seek(r.Synced, io.SeekStart)
	if err := errors.Join(err, file.Truncate(r.Synced)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f *Folder) sync(file *os.File, r *record, at int64) error {
	if at == r.Synced {
		return nil
	}
	if err := file.Sync(); err != nil {
		return err
	}
	r.Synced = at
	f.o.synced()
	return f.write(*r)
}

// finish records that the file is complete.
func (f *Folder) finish(r record) error {
	if err := durable.SyncFolder(f.o.Dir); err != nil {
		return err
	}
	r.Synced, r.Complete = r.Size, true
	return f.write(r)
}

// Forget has the next Fetch download the whole file again.
func (f *Folder) Forget() error {
	if err := os.Remove(f.recordFile()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// unreachable classes the error of a request.
func unreachable(ctx context.Context, err error) error {
	// The error of the client shows the whole address, which may have a token.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &name):
		return strategy.Fail(message.Repository, err)
	default:
		return strategy.Fail(message.Transient, err)
	}
}

// broken classes the error of a transfer.
func broken(ctx context.Context, err error) error {
	switch {
	case strategy.ClassOf(err) != "":
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return strategy.Fail(message.Space, err)
	case isPathError(err):
		return err
	default:
		return unreachable(ctx, err)
	}
}

// isPathError reports whether an error is one of this machine's file system.
func isPathError(err error) bool {
	_, ok := errors.AsType[*os.PathError](err)
	return ok
}

// refused classes a status that is no success (RFC 9110 15).
func refused(status int) error {
	err := fmt.Errorf("the server answers %d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusNotFound, status == http.StatusGone:
		return strategy.Fail(message.Artifact, fmt.Errorf("%w: the file is not there", err))
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return strategy.Fail(message.Transient, err)
	default:
		return strategy.Fail(message.Repository, err)
	}
}

func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}
