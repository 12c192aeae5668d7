// Package audit keeps who did what to what, when, from where and with which result.
//
// Each tenant has a log of its own, and * is the log of what belongs to all tenants. A log
// is a folder of files with a record in each line. Each record has the hash of the one
// before, so that a reader notices a record that was changed, removed or inserted. The
// head, a file beside them, has the number of the first record, and the number and the hash
// of the last one, so that a reader notices records that are missing at either end. The
// record that follows a head that is gone does not continue the chain. A copy of the head in a
// folder beside all logs shows that a log was removed whole. Who can write to both folders can
// make the whole anew: a copy elsewhere, such as an export to syslog, is the proof against that.
//
// The size of a log is bounded: its oldest file goes first. Since each tenant has its own,
// no tenant can push out the records of another.
//
// # When the disk is full
//
// Nothing is done without a record, and nothing is acknowledged before its record is on
// disk. Begin notes what is about to be done in a file of its own and reserves room for
// the record: if that fails, nothing may be done. Keep appends the record and syncs it: if
// that fails, what was done is not acknowledged, although it was done, because nobody
// could prove it. What was begun and has no record, because the process ended or the disk
// failed, gets one with the result "unknown" as soon as a record can be written again. A
// power cut may lose the note of what was begun; what was acknowledged is on disk.
//
// Only the process that holds the lock of the site's folder has the logs open. The package
// decides nothing about what is recorded, and it is given no secret; what looks like one of
// ours is replaced all the same.
package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// AllTenants is the log of what belongs to all tenants or to the site.
const AllTenants = "*"

// allFolder is the folder of that log: no tenant has this name.
const allFolder = "_"

// Size bounds the disk space of a log: a file is followed by the next one when it has
// File bytes, and Files of them are kept.
type Size struct {
	File  int64
	Files int
}

// DefaultSize is 32 MiB for a log, which is about 80,000 records.
var DefaultSize = Size{File: 4 << 20, Files: 8}

// Logs are the audit logs of a site.
type Logs struct {
	dir  string
	size Size

	mu   sync.Mutex
	open map[string]*Log
	// written and failed count the records.
	written, failed uint64
	// failing is why the last record could not be written; nil when it could.
	failing error
}

// Open returns the audit logs in a folder, which may not be there yet.
func Open(dir string) *Logs { return OpenSized(dir, DefaultSize) }

// OpenSized is Open with another size of each log.
func OpenSized(dir string, size Size) *Logs {
	return &Logs{dir: dir, size: size, open: map[string]*Log{}}
}

// Log returns the log of a tenant, or AllTenants. The caller has checked the name.
func (l *Logs) Log(tenant string) (*Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if log := l.open[tenant]; log != nil {
		return log, nil
	}
	folder := tenant
	if tenant == AllTenants {
		folder = allFolder
	}
	if !filepath.IsLocal(folder) || filepath.Base(folder) != folder {
		return nil, fmt.Errorf("%q cannot have an audit log", tenant)
	}
	log := &Log{dir: filepath.Join(l.dir, folder), mark: filepath.Join(l.marks(), folder+markEnd), tenant: tenant, limit: l.size, count: l.count}
	if err := log.open(); err != nil {
		return nil, fmt.Errorf("cannot open the audit log of tenant %s: %w", tenant, err)
	}
	l.open[tenant] = log
	return log, nil
}

// marks is the folder of the copies of the heads, and markEnd ends the name of each.
func (l *Logs) marks() string { return MarksOf(l.dir) }

// MarksOf returns the folder of the copies of the heads of the logs in a folder.
func MarksOf(dir string) string { return dir + "-heads" }

const markEnd = ".json"

// Tenants returns whose logs there are, or were until somebody removed them.
func (l *Logs) Tenants() (all []string, err error) {
	folders, err := list(l.dir, func(e fs.DirEntry) (string, bool) { return e.Name(), e.IsDir() })
	if err != nil {
		return nil, err
	}
	marked, err := list(l.marks(), func(e fs.DirEntry) (string, bool) { return strings.CutSuffix(e.Name(), markEnd) })
	for _, folder := range slices.Compact(slices.Sorted(slices.Values(append(folders, marked...)))) {
		if folder == allFolder {
			folder = AllTenants
		}
		all = append(all, folder)
	}
	return all, err
}

// list returns names that a function takes from the entries of a folder; none if it is not there.
func list(dir string, name func(fs.DirEntry) (string, bool)) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if n, is := name(e); is {
			names = append(names, n)
		}
	}
	return names, err
}

// Resume gives a record to all that was begun by a process that has ended.
func (l *Logs) Resume() error {
	tenants, err := l.Tenants()
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		log, err := l.Log(tenant)
		if err == nil {
			err = log.resume()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Keep appends a record of what was not begun because it was refused.
func (l *Logs) Keep(r v1.AuditRecord) error {
	log, err := l.Log(r.Tenant)
	if err != nil {
		return err
	}
	return log.keep(r)
}

// Do records what a function does. If no record can be written, the function is not
// called. The function completes the record.
func (l *Logs) Do(r v1.AuditRecord, do func(r *v1.AuditRecord) error) error {
	begun, err := l.Begin(r)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	failed := do(&r)
	r.Result = v1.AuditDone
	if failed != nil {
		r.Result, r.Error = v1.AuditFailed, failed.Error()
	}
	if err := begun.Keep(r); err != nil {
		err = fmt.Errorf("%s %s was carried out, but is not in the audit log: %w", r.Action, r.Object, err)
		return errors.Join(failed, err)
	}
	return failed
}

// Figures are what the logs measure.
type Figures struct {
	// Written and Failed count the records.
	Written, Failed uint64
	// Failing tells that the last record could not be written.
	Failing bool
}

// Figures returns what the logs measure.
func (l *Logs) Figures() Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Figures{Written: l.written, Failed: l.failed, Failing: l.failing != nil}
}

// count notes whether a record was written.
func (l *Logs) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing = err; err != nil {
		l.failed++
	} else {
		l.written++
	}
}

// Hold keeps everybody from writing, so that the files can be copied, until release.
func (l *Logs) Hold() (release func(), err error) {
	tenants, err := l.Tenants()
	if err != nil {
		return nil, err
	}
	slices.Sort(tenants) // Two that hold wait for each other in the same order.
	held := make([]*Log, len(tenants))
	for i, tenant := range tenants {
		if held[i], err = l.Log(tenant); err != nil {
			return nil, err
		}
	}
	for _, log := range held {
		log.mu.Lock()
	}
	return func() {
		for _, log := range held {
			log.mu.Unlock()
		}
	}, nil
}

// Close closes all logs.
func (l *Logs) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, log := range l.open {
		errs = append(errs, log.close())
	}
	l.open = map[string]*Log{}
	return errors.Join(errs...)
}
