package cli

import (
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/dnf"
)

// dnfOptions are the flags of the strategy dnf.
type dnfOptions struct {
	Snapshot  string   `help:"Address at which a mirror has each repository of this host as it was at a time, for releases with as-of; with {date}, {time}, or {year}, {month} and {day}, and with {repo}, the id of the repository." env:"OSUPGRADE_DNF_SNAPSHOT" placeholder:"URL"`
	LockLimit length   `help:"Longest time to wait for another dnf or rpm to end, such as 10m." default:"10m" env:"OSUPGRADE_DNF_LOCK_LIMIT"`
	Versions  []string `help:"Package whose version this host reports: a name or pattern such as 'kernel-*' (repeatable)." default:"kernel-core,dnf,dnf5,rpm,systemd,glibc,openssl-libs,osupgrade-agent" env:"OSUPGRADE_DNF_VERSIONS" placeholder:"NAME"`
}

func openDNF(o strategyOptions) (strategy.Strategy, error) {
	d := o.DNF
	s, err := dnf.New(dnf.Options{
		Snapshot: strategy.SnapshotURL(d.Snapshot), LockLimit: time.Duration(d.LockLimit), Versions: d.Versions,
		StateDir: filepath.Join(o.State, "dnf"), Output: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
