package cli

import (
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/apt"
)

// aptOptions are the flags of the strategy apt.
type aptOptions struct {
	Snapshot   string   `help:"Address at which a mirror or snapshot service has the repositories of this host as they were at a time, for releases with as-of; with {date}, {time}, or {year}, {month} and {day}, and with {host} and {path} of each source." env:"OSUPGRADE_APT_SNAPSHOT" placeholder:"URL"`
	Conffiles  string   `help:"What to do with a configuration file that both this host and the package have changed: keep it, replace it, or follow dpkg's own configuration (default)." enum:"keep,replace,default" default:"keep" env:"OSUPGRADE_APT_CONFFILES" placeholder:"keep|replace|default"`
	Removals   string   `help:"Whether an upgrade may remove packages; if not, packages that need it are held back." enum:"refuse,allow" default:"refuse" env:"OSUPGRADE_APT_REMOVALS" placeholder:"refuse|allow"`
	Phased     string   `help:"Whether to install phased updates, which the distribution offers to some machines first." enum:"exclude,include" default:"exclude" env:"OSUPGRADE_APT_PHASED" placeholder:"exclude|include"`
	ThirdParty string   `help:"What to do with third-party sources in an upgrade of the distribution: disable or keep them." enum:"disable,keep" default:"disable" env:"OSUPGRADE_APT_THIRD_PARTY" placeholder:"disable|keep"`
	LockLimit  length   `help:"Longest time to wait for another apt or dpkg to end, such as 10m." default:"10m" env:"OSUPGRADE_APT_LOCK_LIMIT"`
	Versions   []string `help:"Package whose version this host reports: a name or pattern such as 'linux-image-*' (repeatable)." default:"linux-image-*,apt,dpkg,systemd,libc6,openssl,osupgrade-agent" env:"OSUPGRADE_APT_VERSIONS" placeholder:"NAME"`
}

func openApt(o strategyOptions) (strategy.Strategy, error) {
	a := o.Apt
	s, err := apt.New(apt.Options{
		Snapshot: strategy.SnapshotURL(a.Snapshot), Conffiles: a.Conffiles, Removals: a.Removals, Phased: a.Phased,
		ThirdParty: a.ThirdParty, LockLimit: time.Duration(a.LockLimit), Versions: a.Versions,
		StateDir: filepath.Join(o.State, "apt"), Output: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
