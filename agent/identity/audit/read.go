package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// part is a file of a log as it was at one time.
type part struct {
	name  string
	first uint64
	file  *os.File
	size  int64
}

// Read returns the records that a filter chooses, and what of all that it looked at is not
// as it was written. It looks at whole files: at those after the record that the filter
// names, or from the newest one back, until it has as many records as are wanted.
func (l *Logs) Read(tenant string, filter v1.AuditFilter) (v1.AuditLog, error) {
	log, err := l.Log(tenant)
	if err != nil {
		return v1.AuditLog{}, err
	}
	read, err := log.read(filter)
	if err != nil {
		return v1.AuditLog{}, fmt.Errorf("cannot read the audit log of tenant %s: %w", tenant, err)
	}
	return read, nil
}

func (l *Log) read(filter v1.AuditFilter) (read v1.AuditLog, err error) {
	parts, head, err := l.parts()
	defer func() {
		for _, p := range parts {
			_ = p.file.Close()
		}
	}()
	if err != nil {
		return read, err
	}
	read = v1.AuditLog{First: head.First, Last: head.Seq, Records: []v1.AuditRecord{}}
	if head.Seq == 0 {
		read.First = 0
	}
	if filter.After != nil {
		err = readFrom(&read, parts, head, filter)
	} else {
		err = readBack(&read, parts, head, filter)
	}
	return read, err
}

// parts opens the files at one time.
func (l *Log) parts() (parts []part, head head, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.again(); err != nil {
		return nil, l.head, err
	}
	names, err := l.files(filePattern)
	if err != nil {
		return nil, l.head, err
	}
	for _, name := range names {
		file, err := os.Open(filepath.Join(l.dir, name))
		if err != nil {
			return parts, l.head, err
		}
		parts = append(parts, part{name: name, first: firstOf(name), file: file})
		info, err := file.Stat()
		if err != nil {
			return parts, l.head, err
		}
		parts[len(parts)-1].size = info.Size()
	}
	return parts, l.head, nil
}

// readFrom reads on after a record, until there are as many as are wanted.
func readFrom(read *v1.AuditLog, parts []part, head head, filter v1.AuditFilter) error {
	begin := 0
	for i, p := range parts {
		if p.first <= *filter.After+1 {
			begin = i
		}
	}
	c := chain{read: read, head: head}
	c.begins(parts, begin)
	for _, p := range parts[begin:] {
		if err := c.follow(p); err != nil {
			return err
		}
		if c.take(filter); len(read.Records) >= filter.Most() {
			read.Records = read.Records[:filter.Most()]
			return nil
		}
	}
	c.ends()
	return nil
}

// readBack reads from the newest file back, until there are as many as are wanted.
func readBack(read *v1.AuditLog, parts []part, head head, filter v1.AuditFilter) error {
	for begin := len(parts) - 1; ; begin-- {
		read.Records, read.Damage = []v1.AuditRecord{}, nil
		c := chain{read: read, head: head}
		c.begins(parts, max(0, begin))
		for _, p := range parts[max(0, begin):] {
			if err := c.follow(p); err != nil {
				return err
			}
			c.take(filter)
		}
		c.ends()
		if len(read.Records) >= filter.Most() || begin <= 0 {
			read.Records = read.Records[max(0, len(read.Records)-filter.Most()):]
			return nil
		}
	}
}

// chain follows the records of a log and notes what is not as it was written.
type chain struct {
	read *v1.AuditLog
	head head
	// seq is the last record that was looked at; hash is its hash, empty when it is not known.
	seq  uint64
	hash string
	// found are the records of the last part.
	found []v1.AuditRecord
}

func (c *chain) damage(seq uint64, format string, args ...any) {
	c.read.Damage = append(c.read.Damage, v1.AuditDamage{Seq: seq, Message: fmt.Sprintf(format, args...)})
}

// begins notes what is missing before the first part that is looked at.
func (c *chain) begins(parts []part, begin int) {
	if len(parts) == 0 {
		c.seq = max(1, c.head.First) - 1
		return
	}
	c.seq = parts[begin].first - 1
	if begin == 0 && c.head.First > 0 && parts[0].first > c.head.First {
		c.missing(c.head.First, parts[0].first-1)
	}
}

// ends notes what is missing after the last part.
func (c *chain) ends() {
	if c.head.Seq > c.seq {
		c.missing(c.seq+1, c.head.Seq)
	}
}

func (c *chain) missing(from, to uint64) {
	if from == to {
		c.damage(from, "record %d is missing", from)
		return
	}
	c.damage(from, "records %d to %d are missing", from, to)
}

// follow reads a part.
func (c *chain) follow(p part) error {
	text, err := io.ReadAll(io.NewSectionReader(p.file, 0, p.size))
	if err != nil {
		return err
	}
	c.found = nil
	text = text[:wholeLines(text)]
	for line := 1; len(text) > 0; line++ {
		end := bytes.IndexByte(text, '\n') + 1
		r, err := decode(text[:end])
		if format.IsUnsupported(err) {
			return err
		}
		c.record(r, err, fmt.Sprintf("line %d of %s", line, p.name))
		text = text[end:]
	}
	return nil
}

// record looks at the next record of a log; err tells that it is not as it was written.
func (c *chain) record(r v1.AuditRecord, err error, place string) {
	next := c.seq + 1
	switch {
	case err != nil:
		why := "cannot be read"
		if errors.Is(err, errChanged) {
			why = "was changed"
		}
		c.damage(next, "record %d %s (%s)", next, why, place)
		c.seq, c.hash = next, ""
		return
	case r.Seq < next:
		c.damage(r.Seq, "record %d is there once more (%s)", r.Seq, place)
		return
	case r.Seq > next:
		c.missing(next, r.Seq-1)
		c.hash = ""
	}
	switch {
	case c.hash != "" && r.Previous == "":
		c.damage(r.Seq-1, "the head of the log was missing when record %d was written, so what followed record %d may be missing", r.Seq, r.Seq-1)
	case c.hash != "" && r.Previous != c.hash:
		c.damage(r.Seq-1, "record %d is not the one that was written before record %d (%s)", r.Seq-1, r.Seq, place)
	case r.Seq == c.head.Seq && c.head.Hash == "":
		c.damage(r.Seq, "the head of the log is missing, so what followed record %d may be missing, too", r.Seq)
	case r.Seq == c.head.Seq && r.Hash != c.head.Hash:
		c.damage(r.Seq, "record %d is not the one that was written last (%s)", r.Seq, place)
	}
	c.seq, c.hash = r.Seq, r.Hash
	c.found = append(c.found, r)
}

// take takes the records of the last part that a filter chooses.
func (c *chain) take(filter v1.AuditFilter) {
	for _, r := range c.found {
		if filter.Keeps(r) {
			c.read.Records = append(c.read.Records, r)
		}
	}
	c.read.Records = slices.Clip(c.read.Records)
}
