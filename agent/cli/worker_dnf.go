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
	Mode      string   `help:"What strategy dnf upgrades: all packages, only those with a security advisory, or only the packages of --dnf-packages." enum:"all,security,packages" default:"all" env:"OSUPGRADE_DNF_MODE" placeholder:"all|security|packages"`
	Packages  []string `help:"Package to upgrade in mode packages: a name or pattern of installed packages, such as 'nginx*', or name=version, which may be older (repeatable)." env:"OSUPGRADE_DNF_PACKAGES" placeholder:"NAME"`
	Snapshot  string   `help:"Address at which a mirror has each repository of this host as it was at a time, for releases with as-of; with {date}, {time}, or {year}, {month} and {day}, and with {repo}, the id of the repository." env:"OSUPGRADE_DNF_SNAPSHOT" placeholder:"URL"`
	LockLimit length   `help:"Longest time to wait for another dnf or rpm to end, such as 10m." default:"10m" env:"OSUPGRADE_DNF_LOCK_LIMIT"`
	Versions  []string `help:"Package whose version this host reports: a name or pattern such as 'kernel-*' (repeatable)." default:"kernel-core,dnf,dnf5,rpm,systemd,glibc,openssl-libs,osupgrade-agent" env:"OSUPGRADE_DNF_VERSIONS" placeholder:"NAME"`
}

func openDNF(o strategyOptions) (strategy.Strategy, error) {
	d := o.DNF
	declared, err := dnf.Declare(d.Mode, d.Packages)
	if err != nil {
		return nil, err
	}
	s, err := dnf.New(dnf.Options{
		Declared: declared, Snapshot: strategy.SnapshotURL(d.Snapshot), LockLimit: time.Duration(d.LockLimit), Versions: d.Versions,
		StateDir: filepath.Join(o.State, "dnf"), Output: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
