// Package remedy lists what strategies tell a person to do about a host that they cannot
// upgrade or repair. An error takes such a text from here and from nowhere else, and a test
// follows each of them to a healthy host: see followed_test.go.
//
// It decides nothing: which remedy an error has is decided where the error is made.
package remedy

import "fmt"

// Remedy is a text that ends an error, in the form of fmt. If it tells a command, that is all that
// follows "run: ".
type Remedy string

// With returns the remedy with its arguments.
func (r Remedy) With(arguments ...any) Remedy { return Remedy(fmt.Sprintf(string(r), arguments...)) }

// Of several package managers.
const (
	WaitOrRaise  Remedy = "wait for it to end, or raise %s"
	Room         Remedy = "make room on this disk"
	Network      Remedy = "check the network and the repository"
	PrepareAgain Remedy = "prepare the host again"
)

// Of apt, about repositories and archives.
const (
	AptKey         Remedy = "check the key of the repository (signed-by)"
	AptExpired     Remedy = "check the clock of this host, and that the repository or its mirror is renewed"
	AptAddress     Remedy = "check address and suite of the repository"
	AptSources     Remedy = "correct the sources in /etc/apt"
	AptDamaged     Remedy = "check the repository or the cache between it and this host"
	AptFetchAgain  Remedy = "prepare the host again: the repository has changed or the archives were removed"
	AptNoVersion   Remedy = "prepare the host again, or correct the release: no repository of this host has it"
	AptLists       Remedy = "check the sources in /etc/apt, then prepare the host or run: apt-get update"
	AptUnreadable  Remedy = "to fetch the lists anew, run: rm -rf /var/lib/apt/lists/* /var/lib/apt/osupgrade; apt-get update"
	AptDependency  Remedy = "offer what they depend on in a repository of this host"
	AptNoSuite     Remedy = "check /etc/apt/sources.list.d"
	AptNotThere    Remedy = "write %[1]s=VERSION to install it"
	AptChangedFile Remedy = "prepare it again"
	AptNoPast      Remedy = "set apt-snapshot to the address of a mirror with dates, or leave as-of out of the release"
)

// Of apt, about packages that are not whole.
const (
	AptKilled      Remedy = "it was killed, perhaps because memory was short; to see why, run: journalctl -k"
	AptInterrupted Remedy = "prepare the host again: that repairs it, or says how"
	AptNextRun     Remedy = "the next run repairs that"
	// AptConfigure and AptReinstall are for packages that are unpacked, and for those whose
	// unpacking was cut off. apt-get -f install skips one of these if no other needs it. To
	// reinstall it by name is not enough either: apt refuses until its dependencies are repaired.
	AptConfigure Remedy = "run: dpkg --configure -a; apt-get -f install"
	AptReinstall Remedy = "run: dpkg --configure -a; apt-get update; apt-get -f install; apt-get --reinstall install %s"
	// AptGone is for packages whose unpacking was cut off and that no repository has any more.
	AptGone Remedy = "no repository of this host has %[1]s; offer it again and start a run, or remove it; " +
		"run: dpkg --remove --force-remove-reinstreq --force-depends %[1]s; dpkg --configure -a; apt-get -f install"
	AptBroken   Remedy = "run: apt-get -f install"
	AptConffile Remedy = "set apt-conffiles to keep or replace, or answer the question of dpkg; run: dpkg --configure -a"
)

// Of apt, about other versions and releases.
const (
	AptOldVersions  Remedy = "restore a backup, or put their archives there; run: %s"
	AptOthers       Remedy = "decide which versions this host needs; to change that, too, run: apt-get %s"
	AptUnhold       Remedy = "run: apt-mark unhold %s"
	AptUpgradeFirst Remedy = "first upgrade this host to a release of all packages without distribution"
	AptRelease      Remedy = "restore a backup or install this host anew"
)

// Of dnf.
const (
	DNFKey          Remedy = "check the key of the repository (gpgkey)"
	DNFDamaged      Remedy = "prepare the host again; check the repository or the cache between it and this host"
	DNFRepositories Remedy = "check the repositories in /etc/yum.repos.d, then prepare the host"
	DNFNoVersion    Remedy = "prepare the host again: no repository of this host has it"
	DNFChanged      Remedy = "the host has changed since it was prepared; prepare it again"
	DNFDependency   Remedy = "prepare the host again, or offer what it requires in a repository of this host"
	DNFTooOld       Remedy = "this strategy needs dnf 4.4 (Red Hat Enterprise Linux 8.4) or dnf5 5.2.5 (Fedora 41), or later"
	DNFDuplicates   Remedy = "run: %s remove --duplicates"
	DNFOldVersions  Remedy = "restore a backup, or offer them again in a repository of this host; run: %s"
	DNFNoPast       Remedy = "set dnf-snapshot to the address of a mirror with dates, or leave as-of out of the release"
	DNFNotThere     Remedy = "write %[1]s=VERSION to install it"
)

// Of systems that are images. KEY is what a person fills in.
const (
	OSTreeSign      Remedy = "sign what is deployed with KEY, the id of a key that the remote trusts; run: %s"
	RPMOSTreeDeploy Remedy = "run: rpm-ostree deploy %s"
	BootcSwitch     Remedy = "run: bootc switch %s"
	RAUCService     Remedy = "install it (Debian: rauc-service), or start it; run: systemctl start rauc"
	RAUCInfo        Remedy = "run: rauc info %s"
)
