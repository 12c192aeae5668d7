package audit

import (
	"errors"
	"fmt"
	"os"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// begunPattern names the files of what was begun.
const begunPattern = "begun-*.json"

// Begun is something that is about to be done, and that gets a record.
type Begun struct {
	logs *Logs
	log  *Log
	// name is its file.
	name string
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
		err = log.makeRoom()
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

// makeRoom reserves room for a record, until done.
func (l *Log) makeRoom() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reserve(); err != nil {
		return err
	}
	l.begun++
	return nil
}

// note writes the file of what was begun.
func (b *Begun) note(r v1.AuditRecord) error {
	clean(&r)
	r.Format = 0
	text, err := format.Audit.Encode(begunRecord{AuditRecord: r})
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(b.log.dir, begunPattern)
	if err != nil {
		return err
	}
	b.name = file.Name()
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(b.name))
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
		b.Abandon()
		return err
	}
	return b.Drop()
}

// Drop forgets what was begun: nothing was done that needs a record.
func (b *Begun) Drop() error {
	b.done()
	if err := os.Remove(b.name); !errors.Is(err, os.ErrNotExist) { // Somebody may have removed it.
		return err
	}
	return nil
}

// Abandon leaves what was begun without a result: nobody knows what was done.
func (b *Begun) Abandon() {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	b.log.begun--
	b.log.abandoned = append(b.log.abandoned, b.name)
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
	names := l.abandoned
	l.abandoned = nil
	l.mu.Unlock()
	for i, name := range names {
		if err := l.keepBegun(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			l.mu.Lock()
			l.abandoned = append(l.abandoned, names[i:]...)
			l.mu.Unlock()
			return err
		}
	}
	return nil
}

func (l *Log) keepBegun(name string) error {
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
