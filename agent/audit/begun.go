package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// begunPattern names the files of what was begun. Whoever is at it has its file locked.
const begunPattern = "begun-*.json"

// Begun is something that is about to be done, and that gets a record.
type Begun struct {
	logs *Logs
	log  *Log
	file *os.File
}

// Begin notes what is about to be done, and reserves room for its record. If it fails,
// nothing may be done.
func (l *Logs) Begin(r v1.AuditRecord) (*Begun, error) {
	log, err := l.Log(r.Tenant)
	if err != nil {
		return nil, err
	}
	b := &Begun{logs: l, log: log}
	if err = log.resume(); err == nil {
		err = log.locked(func() error {
			if err := log.reserve(); err != nil {
				return err
			}
			if b.file, err = log.create(); err != nil {
				return err
			}
			log.begun++
			return nil
		})
	}
	if err == nil {
		if err = b.note(r); err == nil {
			return b, nil
		}
		b.done()
	}
	l.count(err)
	return nil, fmt.Errorf("the audit log of tenant %s cannot be written: %w", r.Tenant, err)
}

// create makes the file of what is begun, and locks it. Its log is locked meanwhile:
// otherwise somebody could take it for one whose process has ended.
func (l *Log) create() (*os.File, error) {
	file, err := os.CreateTemp(l.dir, begunPattern)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// note writes the file of what was begun.
func (b *Begun) note(r v1.AuditRecord) error {
	clean(&r)
	r.Format = 0
	text, err := format.Audit.Encode(begunRecord{AuditRecord: r})
	if err == nil {
		_, err = b.file.Write(text)
	}
	if err != nil {
		return errors.Join(err, os.Remove(b.file.Name()), b.file.Close())
	}
	return nil
}

// begunRecord is a record whose format is written by package format.
type begunRecord struct {
	v1.AuditRecord
	Format *int `json:"format,omitempty"`
}

// Keep appends the record of what was begun, to the log of the record's tenant, and
// returns once it is on disk. If it fails, the note of what was begun stays and becomes a
// record later.
func (b *Begun) Keep(r v1.AuditRecord) error {
	log, err := b.logs.Log(r.Tenant)
	if err == nil {
		err = log.keep(r)
	}
	if err != nil {
		return errors.Join(err, b.Abandon())
	}
	return b.Drop()
}

// Drop forgets what was begun: nothing was done that needs a record. The file is closed
// last, so that nobody takes it for one whose process has ended.
func (b *Begun) Drop() error {
	b.done()
	return errors.Join(os.Remove(b.file.Name()), b.file.Close())
}

// Abandon leaves what was begun without a result: nobody knows what was done.
func (b *Begun) Abandon() error {
	b.log.mu.Lock()
	b.log.begun--
	b.log.stale = true
	b.log.mu.Unlock()
	return b.file.Close()
}

// done gives up the room that was reserved.
func (b *Begun) done() {
	b.log.mu.Lock()
	b.log.begun--
	b.log.mu.Unlock()
}

// resume gives a record to what was begun by a process that has ended, or whose record
// could not be written.
func (l *Log) resume() error {
	l.mu.Lock()
	stale := l.stale
	l.stale = false
	l.mu.Unlock()
	if !stale {
		return nil
	}
	err := l.keepBegun()
	if err != nil {
		l.mu.Lock()
		l.stale = true
		l.mu.Unlock()
	}
	return err
}

func (l *Log) keepBegun() error {
	entries, err := os.ReadDir(l.dir) // Glob would find nothing in a folder that cannot be read.
	if err != nil {
		return err
	}
	for _, e := range entries {
		if begun, err := filepath.Match(begunPattern, e.Name()); err != nil || !begun {
			continue
		}
		if err := l.keepOne(filepath.Join(l.dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *Log) keepOne(name string) error {
	var file *os.File
	err := l.locked(func() (err error) {
		file, err = abandoned(name)
		return err
	})
	if err != nil || file == nil {
		return err
	}
	defer func() { _ = file.Close() }()
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var begun begunRecord
	if err := format.Audit.Decode(text, &begun); format.IsUnsupported(err) {
		return err
	} else if err != nil { // A power cut came before its content.
		begun.AuditRecord = v1.AuditRecord{As: v1.AuditSite, From: v1.AuditLocal, Action: "change", Object: "unknown"}
	}
	r := begun.AuditRecord
	r.Result, r.Error = v1.AuditUnknown, "the process ended or the disk failed before the result was recorded; look whether it was done"
	if err := l.keep(r); err != nil {
		return err
	}
	return os.Remove(name)
}

// abandoned opens the file of what was begun, and locks it; nil if somebody is at it.
func abandoned(name string) (*os.File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, file.Close()
	}
	return file, nil
}
