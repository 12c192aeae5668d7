package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	natsdstore "github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
)

// DefaultSkip is how many sequences Recover leaves out beyond the last one that anybody
// is known to have seen.
const DefaultSkip = 1000

// MaxSkip bounds how many sequences are left out: each costs a record. What a host
// claims to know beyond that is not believed.
const MaxSkip = 1_000_000

// ErrNoSite means that there is no site in a folder.
var ErrNoSite = errors.New("no site has run in")

// Recover accepts the logs of a site as they are, while the site does not run: each log
// gets a new identity, so that hosts do not take it for the one that they know, and goes
// on so far beyond its end that no number of a run is given out twice. skip is how many
// records beyond those that hosts have told of may be lost. What was done is written to
// out.
func Recover(ctx context.Context, dir string, skip uint64, out io.Writer, logger *slog.Logger) error {
	if _, err := os.Stat(storeFolder(dir)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w %s", ErrNoSite, dir)
	}
	server, err := startForRecovery(ctx, dir, out, logger)
	if err != nil {
		return err
	}
	return errors.Join(recoverAll(ctx, server, dir, skip, out), server.Close())
}

func storeFolder(dir string) string { return filepath.Join(dir, "store") }
func guardFile(dir string) string   { return filepath.Join(dir, "guard.json") }

// startForRecovery starts the server of a site, without a listener. It removes what says
// that the records are not those of before: whoever recovers a site accepts them.
func startForRecovery(ctx context.Context, dir string, out io.Writer, logger *slog.Logger) (*natsd.Server, error) {
	hosts, err := openHosts(dir)
	if err != nil {
		return nil, err
	}
	for {
		server, err := natsd.Start(ctx, natsd.Options{Dir: storeFolder(dir), Hosts: hosts, Holder: "osupgrade-agent recover", Log: logger})
		damage, damaged := errors.AsType[*natsdstore.Damage](err)
		if !damaged || damage.Override == "" {
			return server, err
		}
		if err := os.Remove(damage.Override); err != nil {
			return nil, fmt.Errorf("cannot accept the store as it is: %w", err)
		}
		_, _ = fmt.Fprintf(out, "Accepted: %s.\n", damage.What)
	}
}

func recoverAll(ctx context.Context, server *natsd.Server, dir string, skip uint64, out io.Writer) error {
	nc, err := server.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	guards, err := guard.OpenFile(guardFile(dir))
	if errors.Is(err, guard.ErrDamaged) {
		_, _ = fmt.Fprintf(out, "Accepted: the file %s, which guards the logs, is damaged.\n", guardFile(dir))
		if err = os.Remove(guardFile(dir)); err == nil {
			guards, err = guard.OpenFile(guardFile(dir))
		}
	}
	if err != nil {
		return err
	}
	tenants, err := Tenants(dir)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		if err := recoverLog(ctx, nc, guards, tenant, skip, out); err != nil {
			return fmt.Errorf("cannot recover the log of tenant %s: %w", tenant, err)
		}
	}
	kept, err := store.Open(ctx, nc)
	if err != nil {
		return err
	}
	return kept.Renew(ctx)
}

// recoverLog recovers one log. The guard goes last: until then, the whole can be done
// again.
func recoverLog(ctx context.Context, nc *nats.Conn, guards *guard.File, tenant string, skip uint64, out io.Writer) error {
	l, err := jetstream.Open(ctx, nc, tenant)
	if err != nil {
		return err
	}
	last, err := l.Last(ctx)
	if err != nil {
		return err
	}
	known, kept := last, guards.State(tenant)
	for _, seq := range []uint64{kept.Seq, kept.Told} {
		if seq > last+MaxSkip {
			_, _ = fmt.Fprintf(out, "Tenant %s: a host reports record %d, which cannot be true; it is ignored.\n", tenant, seq)
			continue
		}
		known = max(known, seq)
	}
	if err := l.Skip(ctx, known+skip+1); err != nil {
		return err
	}
	if err := l.Renew(ctx); err != nil {
		return err
	}
	if err := guards.Forget(tenant); err != nil {
		return err
	}
	lost := "Nothing is missing."
	if known > last {
		lost = fmt.Sprintf("Records %d to %d are missing.", last+1, known)
	}
	_, _ = fmt.Fprintf(out, "Tenant %s: %s Run numbers continue at %d, so that none is used twice.\n", tenant, lost, known+skip+1)
	return nil
}

// Tenants returns the tenants that the site in a folder has ever served: it has a log for
// each.
func Tenants(dir string) (tenants []string, err error) {
	found, err := filepath.Glob(filepath.Join(storeFolder(dir), "jetstream", "*", "streams", log.Subjects{Tenant: "*"}.Stream()))
	for _, path := range found {
		tenants = append(tenants, strings.TrimPrefix(filepath.Base(path), log.Subjects{}.Stream()))
	}
	return tenants, err
}
