package dnf

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// call is what one call of the strategy has in common.
type call struct {
	*Strategy
	// what is to be installed.
	what release.Packages
	// options are those of every dnf.
	options  []string
	progress func(percent int, text string)
	// until is when waiting for a lock ends; the zero time never.
	until time.Time
}

func (s *Strategy) call(ctx context.Context, job strategy.Job) (*call, error) {
	what, err := job.Packages()
	call := &call{Strategy: s, what: what, options: s.options, progress: job.Progress, until: time.Now().Add(s.LockLimit)}
	if err == nil {
		err = call.checkWhat()
	}
	if err == nil {
		err = s.dropCaches(job.BootID)
	}
	if err == nil && !what.AsOf.IsZero() {
		var past []string
		past, err = call.past(ctx)
		call.options = slices.Concat(s.options, past)
	}
	return call, err
}

// offline has dnf use nothing but what it has fetched.
const offline = "--cacheonly"

// dnf runs a dnf that changes something. When somebody else was faster to take a lock it
// is run again.
func (s *call) dnf(ctx context.Context, what string, args ...string) error {
	c := program.Command{Name: s.command, Args: slices.Concat(s.options, args)}
	return s.locks().Run(ctx, s.until, s.progress, func() error {
		ended, err := s.run(ctx, c)
		if err == nil && ended.Exit != 0 {
			err = s.failure(s.command+" "+what, ended)
		}
		return err
	})
}

// toDisk has everything on disk that was written so far: what is told to be prepared or done
// stays so in a power cut.
func (s *call) toDisk(ctx context.Context) error {
	s.progress(98, "syncing to disk")
	return s.sync(ctx, func(text string) { s.progress(-1, text) })
}

// read runs a command that only reads, and returns its standard output.
func (s *Strategy) read(ctx context.Context, name string, args ...string) (string, error) {
	c := program.Command{Name: name, Args: args, Quiet: true}
	ended, err := s.run(ctx, c)
	if err == nil && ended.Exit != 0 {
		err = s.failure(c.Describe(), ended)
	}
	return ended.Stdout, err
}

// query asks dnf about packages by what it has fetched, for some fields of each.
func (s *call) query(ctx context.Context, fields []string, args ...string) ([][]string, error) {
	format := strings.Join(fields, "\t") + s.rowEnd
	printed, err := s.readDNF(ctx, slices.Concat([]string{"repoquery", "--qf", format}, args)...)
	if err != nil {
		return nil, err
	}
	return parseRows(printed, len(fields))
}

// parseRows reads the rows of a query. Tabs are between the fields: a reason of dnf5 has
// two words.
func parseRows(printed string, width int) (rows [][]string, err error) {
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != width || slices.Contains(row, "") {
			return nil, fmt.Errorf("dnf repoquery printed %.200q, which is not a package", line)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// readDNF runs a dnf that only reads what it has fetched, and returns its standard output.
func (s *call) readDNF(ctx context.Context, args ...string) (string, error) {
	return s.read(ctx, s.command, slices.Concat(s.options, []string{"--quiet", offline}, args)...)
}

// database asks rpm for all packages.
func (s *Strategy) database(ctx context.Context) (database, error) {
	now, _, err := s.installed(ctx)
	return now, err
}

func (s *Strategy) installed(ctx context.Context) (database, sizes, error) {
	printed, err := s.read(ctx, "rpm", "-qa", "--qf", databaseFormat)
	if err != nil {
		return nil, nil, err
	}
	return parseDatabase(printed)
}

// resolve asks dnf what it would do.
func (s *call) resolve(ctx context.Context, args ...string) (resolved, error) {
	c := program.Command{Name: s.command, Args: slices.Concat(s.options, []string{offline, "--assumeno"}, args), Quiet: true}
	ended, err := s.run(ctx, c)
	if err != nil {
		return resolved{}, err
	}
	would, err := s.resolved(ended.Printed)
	if err != nil && ended.Exit != 0 {
		return resolved{}, s.failure(s.command+" --assumeno "+args[0], ended)
	}
	if err != nil {
		return resolved{}, fmt.Errorf("cannot read what dnf would do: %w", err)
	}
	return would, nil
}

// storedName is the name of a stored transaction, which dnf5 demands.
const storedName = "transaction.json"

// carry has dnf carry out a transaction, and nothing else.
func (s *call) carry(ctx context.Context, transaction storedTransaction, args ...string) error {
	if len(transaction.RPMs) == 0 {
		return nil
	}
	data, err := json.MarshalIndent(s.spell(transaction), "", " ")
	if err != nil {
		return err
	}
	file := filepath.Join(s.StateDir, storedName)
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		return err
	}
	if err := durable.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	if s.replayFolder {
		file = s.StateDir
	}
	return s.dnf(ctx, strings.Join(s.replayCommand, " "), slices.Concat(args, s.replayCommand, []string{file})...)
}

// reasons returns why a package that is new gets installed: as the versions of it that
// are there, or otherwise.
func (s *call) reasons(ctx context.Context, changes []message.Change, otherwise func(key string) string) (func(key string) string, error) {
	known := map[string]string{}
	if slices.ContainsFunc(changes, func(c message.Change) bool { return c.From == "" }) {
		rows, err := s.query(ctx, []string{"%{name}.%{arch}", "%{reason}"}, "--installed")
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			known[row[0]] = row[1]
		}
	}
	return func(key string) string {
		if known[key] != "" {
			return known[key]
		}
		return otherwise(key)
	}, nil
}

// wanted returns "user" for a package of a list.
func (s *call) wanted(key string) string {
	name, _ := splitKey(key)
	for _, word := range s.what.Listed() {
		if bare, _, _ := strings.Cut(word, "="); bare == name {
			return "user"
		}
	}
	return "dependency"
}
