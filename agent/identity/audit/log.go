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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Log is the audit log of a tenant.
type Log struct {
	dir, tenant string
	// mark is the path of a copy of the head, which outlives the folder of the log.
	mark  string
	limit Size
	// count notes whether a record was written.
	count func(error)

	mu sync.Mutex
	// file is the newest file, which has size bytes; reserved is up to where it has room on
	// the disk.
	file           *os.File
	size, reserved int64
	// head is what the last record is.
	head               head
	headFile, markFile *os.File
	// begun counts what is under way.
	begun int
	// abandoned are the files of what was begun, has no record, and is worked at by nobody.
	abandoned []string
	// torn tells that a part of a record that failed may be behind the last one.
	torn bool

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

// open reads where the log ends, and what the process before has begun.
func (l *Log) open() error {
	for _, folder := range []string{l.dir, filepath.Dir(l.mark)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := durable.SyncFolder(filepath.Dir(folder)); err != nil {
			return err
		}
	}
	begun, err := l.files(begunPattern)
	if err != nil {
		return err
	}
	for _, name := range begun {
		l.abandoned = append(l.abandoned, filepath.Join(l.dir, name))
	}
	_, err = os.Stat(filepath.Join(l.dir, headName))
	headless := errors.Is(err, os.ErrNotExist)
	if l.headFile, err = os.OpenFile(filepath.Join(l.dir, headName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if l.markFile, err = os.OpenFile(l.mark, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return errors.Join(err, l.headFile.Close())
	}
	if err := l.load(headless); err != nil {
		return errors.Join(err, l.close())
	}
	l.writeMark() // There is none yet for a log from before there were copies, or of a backup.
	return nil
}

// filePattern names the files of the log, which sort from the oldest to the newest: the name
// of each has the number of its first record.
const filePattern = "audit-*.jsonl"

// files returns the names in the folder of the log that match a pattern, in their order.
func (l *Log) files(pattern string) (names []string, err error) {
	entries, err := os.ReadDir(l.dir) // Glob would find nothing in a folder that cannot be read.
	for _, e := range entries {
		if matches, _ := filepath.Match(pattern, e.Name()); matches {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func fileName(first uint64) string { return fmt.Sprintf("audit-%016d.jsonl", first) }

// firstOf returns the number in the name of a file; 0 for a name that is none of ours.
func firstOf(name string) uint64 {
	first, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, "audit-"), ".jsonl"), 10, 64)
	return first
}

// load reads the head and the end of the newest file. What a crash has left of a record is
// dropped: nobody was answered before the record was whole. headless tells that the file of the
// head is gone, which no crash removes.
func (l *Log) load(headless bool) error {
	var err error
	if l.head, err = readHead(l.headFile); err != nil {
		return err
	}
	names, err := l.files(filePattern)
	if err != nil {
		return err
	}
	if len(names) == 0 && l.head.Seq == 0 {
		// The log is new, or somebody has removed all of it: then its records are missing.
		if l.head, err = readHead(l.markFile); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return l.next(l.head.Seq + 1)
	}
	newest := names[len(names)-1]
	if l.file, err = os.OpenFile(filepath.Join(l.dir, newest), os.O_RDWR, 0o600); err != nil {
		return err
	}
	text, err := io.ReadAll(l.file)
	if err != nil {
		return err
	}
	if l.size = wholeLines(text); l.size < int64(len(text)) {
		if err := errors.Join(l.file.Truncate(l.size), l.file.Sync()); err != nil {
			return err
		}
	}
	last, found, err := l.last(text[:l.size], names)
	if err != nil {
		return err
	}
	// The head is behind after a power cut. It is ahead when records are missing: the log
	// then goes on behind it, and whoever reads it sees the gap.
	if found && last.Seq > l.head.Seq {
		l.head.Seq, l.head.Hash = last.Seq, last.Hash
	}
	if l.head.First == 0 {
		l.head.First = 1
		if len(names) >= l.limit.Files { // Older ones may have been removed by the log itself.
			l.head.First = firstOf(names[0])
		}
	}
	l.head.Seq = max(l.head.Seq, firstOf(newest)-1)
	if headless && l.head.Seq > 0 {
		// Nobody knows whether the last record that is there was the last one. Without its hash the
		// next one does not continue the chain, so whoever reads it sees that.
		l.head.Hash = ""
		return errors.Join(l.writeHead(), l.headFile.Sync(), durable.SyncFolder(l.dir))
	}
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
func readHead(file *os.File) (kept head, err error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, headSize))
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

// writeHead writes the head and its copy, which are not synced: they may be behind after a power cut.
func (l *Log) writeHead() error {
	text, err := l.head.encode()
	if err != nil {
		return err
	}
	if _, err := l.headFile.WriteAt(text, 0); err != nil {
		return err
	}
	l.writeMark()
	return nil
}

// writeMark writes the copy of the head. A copy that cannot be written is behind: then fewer
// records are missed if somebody removes the log, and no record is refused for it.
func (l *Log) writeMark() {
	if text, err := l.head.encode(); err == nil {
		_, _ = l.markFile.WriteAt(text, 0)
	}
}

// encode returns the text of a head, which always has the same size.
func (h head) encode() ([]byte, error) {
	text, err := format.AuditHead.EncodeSummed("head", h)
	if err != nil {
		return nil, err
	}
	text = append(bytes.TrimSpace(text), bytes.Repeat([]byte(" "), max(0, headSize-len(text)))...)
	return append(text, '\n')[:min(headSize, len(text)+1)], nil
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
	names, err := l.files(filePattern)
	if err != nil {
		return err
	}
	old := names[:max(0, len(names)-l.limit.Files)]
	// The head says first what is kept: files that are missing without it are missed.
	if l.head.First == 0 || len(old) > 0 {
		l.head.First = firstOf(names[len(old)])
	}
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

// again makes the files of the log anew that somebody has removed or replaced while the log is
// open: what is written to those that are open would be lost. The log goes on behind its last
// record, so whoever reads it sees that the others are missing.
func (l *Log) again() error {
	headGone, headErr := replaced(l.headFile)
	newestGone, newestErr := replaced(l.file)
	if err := errors.Join(headErr, newestErr); err != nil || !headGone && !newestGone {
		return err
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	if headGone {
		file, err := os.OpenFile(filepath.Join(l.dir, headName), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		_ = l.headFile.Close() // It is one of the files that are gone.
		l.headFile = file
		if err := errors.Join(l.writeHead(), l.headFile.Sync()); err != nil {
			return err
		}
	}
	if newestGone {
		if err := l.next(l.head.Seq + 1); err != nil {
			return err
		}
		l.torn = false
	}
	return errors.Join(durable.SyncFolder(l.dir), durable.SyncFolder(filepath.Dir(l.dir)))
}

// replaced reports whether a file that is open is not the one at its path any more.
func replaced(file *os.File) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(file.Name())
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return err == nil && !os.SameFile(open, there), err
}

// reserve has room on the disk for one more record than are under way.
func (l *Log) reserve() error {
	if err := l.again(); err != nil {
		return err
	}
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
	seq, err := l.append(r)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.again(); err != nil {
		return 0, err
	}
	if l.size >= l.limit.File {
		if err := l.next(l.head.Seq + 1); err != nil {
			return 0, err
		}
	}
	if l.torn {
		if err := l.dropTorn(); err != nil {
			return 0, err
		}
	}
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
	if err != nil {
		l.head = before
		return 0, errors.Join(err, l.dropTorn())
	}
	l.size += int64(len(line))
	return r.Seq, nil
}

// dropTorn cuts off what a record that failed may have left: the next one must not follow it.
func (l *Log) dropTorn() error {
	err := l.file.Truncate(l.size)
	l.torn, l.reserved = err != nil, 0
	return err
}

// sync returns once a record is on disk.
func (l *Log) sync(seq uint64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.synced.Load() >= seq {
		return nil
	}
	l.mu.Lock()
	file, last := l.file, l.head.Seq
	l.mu.Unlock()
	err := file.Sync()
	switch {
	case err == nil:
		l.synced.Store(max(l.synced.Load(), last))
	case errors.Is(err, os.ErrClosed) && l.synced.Load() >= seq: // Who begins a file has synced the one before.
		return nil
	}
	return err
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
	err := errors.Join(l.headFile.Close(), l.markFile.Close())
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}
