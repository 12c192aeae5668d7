package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Log is the audit log of a tenant. Several processes may have it open.
type Log struct {
	dir, tenant string
	limit       Size
	// count notes whether a record was written.
	count func(error)

	mu sync.Mutex
	// file is the newest file, which has size bytes; reserved is up to where it has room on
	// the disk.
	file           *os.File
	size, reserved int64
	// head is what the last record is.
	head     head
	headFile *os.File
	// begun counts what is under way.
	begun int
	// stale tells that something was begun that has no record and that nobody works at.
	stale bool

	// syncing is held by who syncs: the records of all who wait meanwhile are synced at once.
	syncing sync.Mutex
	// synced is the last record that is on disk.
	synced atomic.Uint64
}

// head says how far a log has come.
type head struct {
	// First is the first record that is kept, Seq the last one, and Hash its hash.
	First uint64 `json:"first"`
	Seq   uint64 `json:"seq"`
	Hash  string `json:"hash"`
}

const (
	headName = "head.json"
	// headSize is the size of the file of the head: it is written in place.
	headSize = 512
	// maxLine bounds a record, in bytes, and slack is how much room is reserved at once.
	maxLine, slack = 32 << 10, 256 << 10
)

func (l *Log) open() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	if err := durable.SyncFolder(filepath.Dir(l.dir)); err != nil {
		return err
	}
	lock, err := durable.WaitForFolder(l.dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	l.stale = true // Perhaps; Resume or the first Begin looks.
	return l.refresh()
}

// files returns the files of the log, oldest first. The name of each has the number of its
// first record.
func (l *Log) files() ([]string, error) {
	entries, err := os.ReadDir(l.dir)
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "audit-") && strings.HasSuffix(e.Name(), ".jsonl") {
			names = append(names, e.Name())
		}
	}
	return names, err // ReadDir sorts them.
}

func fileName(first uint64) string { return fmt.Sprintf("audit-%016d.jsonl", first) }

// firstOf returns the number in the name of a file; 0 for a name that is none of ours.
func firstOf(name string) uint64 {
	first, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, "audit-"), ".jsonl"), 10, 64)
	return first
}

// refresh takes note of what another process has appended. The folder is locked.
func (l *Log) refresh() error {
	if !same(l.headFile) {
		again, err := os.OpenFile(filepath.Join(l.dir, headName), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if l.headFile != nil {
			_ = l.headFile.Close()
		}
		l.headFile = again
	}
	names, err := l.files()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if l.head, err = l.readHead(); err != nil {
			return err
		}
		return l.next(l.head.Seq + 1)
	}
	newest := filepath.Join(l.dir, names[len(names)-1])
	if l.file != nil && l.file.Name() == newest && same(l.file) {
		info, err := l.file.Stat()
		if err != nil || info.Size() == l.size {
			return err
		}
	}
	return l.load(newest, names)
}

// same reports whether an open file is still the one of its name: an editor may have put
// another one in its place, and what is appended to the old one would be lost.
func same(file *os.File) bool {
	if file == nil {
		return false
	}
	now, err := os.Stat(file.Name())
	if err != nil {
		return false
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(opened, now)
}

// load reads the end of the newest file. What a crash has left of a record is dropped:
// nobody was answered before the record was whole.
func (l *Log) load(newest string, names []string) error {
	file, err := os.OpenFile(newest, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	whole := wholeLines(text)
	if whole < int64(len(text)) {
		if err := errors.Join(file.Truncate(whole), file.Sync()); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	kept, err := l.readHead()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	last, found, err := l.last(text[:whole], names)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	// The head is behind after a power cut. It is ahead when records are missing: the log
	// then goes on behind it, and whoever reads it sees the gap.
	if found && last.Seq > kept.Seq {
		kept.Seq, kept.Hash = last.Seq, last.Hash
	}
	if kept.First == 0 {
		kept.First = firstOf(names[0])
	}
	kept.Seq = max(kept.Seq, firstOf(filepath.Base(newest))-1)
	if l.file != nil {
		if l.file.Name() != newest {
			l.synced.Store(l.head.Seq) // Who begins a file has synced the one before.
		}
		_ = l.file.Close()
	}
	l.file, l.size, l.reserved, l.head = file, whole, 0, kept
	return nil
}

// wholeLines returns how much of a file is whole lines. A power cut can leave zeros in the
// last one, which no record has.
func wholeLines(text []byte) int64 {
	for {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
		if len(text) == 0 || bytes.IndexByte(lastLine(text), 0) < 0 {
			return int64(len(text))
		}
		text = text[:len(text)-len(lastLine(text))]
	}
}

// lastLine returns the last line of a text of whole lines, with its end.
func lastLine(text []byte) []byte {
	return text[bytes.LastIndexByte(text[:max(0, len(text)-1)], '\n')+1:]
}

// last returns the last record that is as it was written: of the newest file, or of the one
// before that, which is full when the newest one has been begun.
func (l *Log) last(newest []byte, names []string) (last v1.AuditRecord, found bool, err error) {
	last, found, err = lastRecord(newest)
	if found || err != nil || len(names) < 2 {
		return last, found, err
	}
	text, err := os.ReadFile(filepath.Join(l.dir, names[len(names)-2]))
	if err != nil {
		return last, false, err
	}
	return lastRecord(text[:wholeLines(text)])
}

// lastRecord returns the last record of a text that is as it was written.
func lastRecord(text []byte) (last v1.AuditRecord, found bool, err error) {
	for len(text) > 0 {
		line := lastLine(text)
		r, err := decode(line)
		if err == nil || format.IsUnsupported(err) {
			return r, err == nil, err
		}
		text = text[:len(text)-len(line)]
	}
	return last, false, nil
}

// readHead returns the head. One that a power cut has damaged is none.
func (l *Log) readHead() (kept head, err error) {
	text, err := io.ReadAll(io.NewSectionReader(l.headFile, 0, headSize))
	if err != nil {
		return head{}, err
	}
	switch err := format.AuditHead.DecodeSummed(bytes.TrimSpace(text), "head", &kept); {
	case format.IsUnsupported(err):
		return head{}, err
	case err != nil:
		return head{}, nil //nolint:nilerr // as said above
	}
	return kept, nil
}

// writeHead writes the head, which is not synced: it may be behind after a power cut.
func (l *Log) writeHead() error {
	text, err := format.AuditHead.EncodeSummed("head", l.head)
	if err != nil {
		return err
	}
	text = append(bytes.TrimSpace(text), bytes.Repeat([]byte(" "), max(0, headSize-len(text)))...)
	_, err = l.headFile.WriteAt(append(text, '\n')[:min(headSize, len(text)+1)], 0)
	return err
}

// next begins a file and removes the oldest ones. The one before is synced first.
func (l *Log) next(first uint64) error {
	if l.file != nil {
		if err := l.file.Sync(); err != nil {
			return err
		}
		l.synced.Store(l.head.Seq)
	}
	file, err := os.OpenFile(filepath.Join(l.dir, fileName(first)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.size, l.reserved = file, 0, 0
	names, err := l.files()
	if err != nil {
		return err
	}
	old := names[:max(0, len(names)-l.limit.Files)]
	// The head says first what is kept: files that are missing without it are missed.
	l.head.First = firstOf(names[len(old)])
	if err := errors.Join(l.writeHead(), l.headFile.Sync()); err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(filepath.Join(l.dir, name)); err != nil {
			return err
		}
	}
	return durable.SyncFolder(l.dir)
}

// locked calls a function while this goroutine alone, of all processes, writes to the log.
func (l *Log) locked(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock, err := durable.WaitForFolder(l.dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := l.refresh(); err != nil {
		return err
	}
	return do()
}

// reserve has room on the disk for one more record than are under way.
func (l *Log) reserve() error {
	if l.size >= l.limit.File {
		if err := l.next(l.head.Seq + 1); err != nil {
			return err
		}
	}
	end := l.size + int64(l.begun+1)*maxLine
	if end <= l.reserved {
		return nil
	}
	var err error
	for _, more := range []int64{slack, 0} {
		if err = unix.Fallocate(int(l.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, l.size, end+more-l.size); err == nil {
			l.reserved = end + more
			return nil
		}
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil // This file system reserves nothing; a full disk then shows when the record is written.
	}
	return err
}

// keep appends a record, and returns once it is on disk.
func (l *Log) keep(r v1.AuditRecord) error {
	var seq uint64
	err := l.locked(func() (err error) {
		if l.size >= l.limit.File {
			if err := l.next(l.head.Seq + 1); err != nil {
				return err
			}
		}
		seq, err = l.append(r)
		return err
	})
	if err == nil {
		err = l.sync(seq)
	}
	l.count(err)
	if err != nil {
		return fmt.Errorf("cannot write to the audit log of tenant %s: %w", l.tenant, err)
	}
	return nil
}

// append writes a record behind the last one.
func (l *Log) append(r v1.AuditRecord) (seq uint64, err error) {
	r.Format, r.Tenant, r.Seq, r.Previous = format.Audit.Newest, l.tenant, l.head.Seq+1, l.head.Hash
	if r.At.IsZero() {
		r.At = time.Now()
	}
	r.At = r.At.UTC().Truncate(time.Microsecond)
	line, err := encode(&r)
	if err != nil {
		return 0, err
	}
	before := l.head
	if _, err = l.file.WriteAt(line, l.size); err == nil {
		l.head.Seq, l.head.Hash = r.Seq, r.Hash
		err = l.writeHead()
	}
	if err != nil { // A part may be there: what comes next must not follow it.
		l.head, l.reserved = before, 0
		return 0, errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(line))
	return r.Seq, nil
}

// sync returns once a record is on disk.
func (l *Log) sync(seq uint64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.synced.Load() >= seq {
		return nil
	}
	for {
		l.mu.Lock()
		file, last := l.file, l.head.Seq
		l.mu.Unlock()
		err := file.Sync()
		switch {
		case err == nil:
			l.synced.Store(max(l.synced.Load(), last))
			return nil
		case l.synced.Load() >= seq: // Who begins a file has synced the one before.
			return nil
		case !errors.Is(err, os.ErrClosed): // It was opened anew if it is closed.
			return err
		}
	}
}

// encode makes a line of a record: it sets the hash and makes it fit.
func encode(r *v1.AuditRecord) ([]byte, error) {
	clean(r)
	for {
		r.Hash = ""
		text, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		r.Hash = hashOf(text)
		if text, err = json.Marshal(r); err != nil {
			return nil, err
		}
		if len(text) < maxLine {
			return append(text, '\n'), nil
		}
		r.Diff = cut(r.Diff, len(r.Diff)/2)
	}
}

// decode reads a line and checks that it is as it was written. The hash is the last member
// and is checked over the text, so that a record with members that this version does not
// know is whole, too.
func decode(line []byte) (r v1.AuditRecord, err error) {
	if err := format.Audit.Decode(line, &r); err != nil {
		return r, err
	}
	text, end, found := bytes.Cut(line, []byte(`,"hash":"`))
	hash := hashOf(append(slices.Clone(text), '}'))
	// Nothing may follow the hash: of two members of a name the last one counts.
	if !found || string(end) != hash+"\"}\n" {
		return r, errChanged
	}
	return r, nil
}

var errChanged = errors.New("it was changed")

func (l *Log) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.file.Close(), l.headFile.Close())
}
