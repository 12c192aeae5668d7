package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// drawReleases declares the releases of a third of the seeds.
func (w *World) drawReleases() {
	if !w.rng.chance("releases", 1.0/3) {
		return
	}
	w.count("seeds with releases")
	w.releases = []string{"alpha", "beta"}
	for _, name := range w.releases {
		w.setRelease(name, w.drawRelease())
	}
	if w.rng.chance("machines come with a release", 0.5) {
		w.ship(w.releases[0])
	}
}

// ship has most machines come with a release.
func (w *World) ship(name string) {
	kept, _, err := w.store.Release(context.Background(), tenant, name)
	w.must(err)
	for _, m := range w.inOrder {
		if w.rng.chance("comes with a release/"+m.name, 0.9) {
			m.shipped = kept.Value.Pin(name).Ref().String()
			w.oracle.Has(m.name, m.shipped)
		}
	}
}

// drawRelease draws a release. Hosts report how many upgrades they have had, so that some do not fit.
func (w *World) drawRelease() v1.Release {
	r := v1.Release{Version: fmt.Sprintf("%d.0", 1+w.rng.n("version of a release", 3)), Scheme: release.Semver, Data: fmt.Appendf(nil, `{"edition":%d}`, w.rng.n("edition of a release", 1000))}
	if w.rng.chance("release of packages", 0.4) {
		r.Data, r.Packages = nil, &release.Packages{AsOf: time.Unix(1e9+int64(w.rng.n("time of a release", 1000)), 0), Same: w.rng.chance("release for which all plan the same", 0.7)}
	}
	if w.rng.chance("release requires", 0.2) {
		r.Requires = map[string]string{"base": one(w.rng, "required base", "< 2", ">= 1")}
	}
	return r
}

// setRelease writes a release.
func (w *World) setRelease(name string, r v1.Release) {
	ctx := context.Background()
	_, base, _ := w.store.Release(ctx, tenant, name)
	_, err := w.store.PutRelease(ctx, tenant, name, v1.Kept[v1.Release]{Value: r}, base)
	w.declared(err)
}

// drawOfEnvironment draws to which release an environment goes.
func (w *World) drawOfEnvironment(of string, p float64) (goes release.Target) {
	if len(w.releases) > 0 && w.rng.chance(of+" names a release", p) {
		goes.Releases = map[string]string{release.OS: one(w.rng, "release of "+of, w.releases...)}
	}
	return goes
}

// editRelease withdraws a release, which may be the one that a run installs, or puts another of that
// name in its place, as after a deletion.
func (w *World) editRelease(name string) {
	kept, _, err := w.store.Release(context.Background(), tenant, name)
	w.declared(err)
	r := kept.Value
	switch one(w.rng, "how a release is edited", "withdraw", "withdraw", "describe", "replace", "replace") {
	case "withdraw":
		r.Withdrawn = &release.Withdrawn{Reason: "because", By: "operator", At: time.Now()}
		w.count("releases withdrawn")
	case "describe":
		r.Description = "another text"
	case "replace":
		r = w.drawRelease()
		w.count("releases replaced")
	}
	w.setRelease(name, r)
	w.answered("release", name, nil)
}

// Releases implements strategy.Releaser: some machines have a worker that carries out none.
func (s system) Releases() []release.Kind {
	if s.m.traits.readsNone {
		return nil
	}
	return []release.Kind{release.OfData, release.OfPackages}
}

var _ strategy.Releaser = system{}

// library is the package that mirrors have in different versions.
const library = "library"

// addPackages adds the packages of a release to a plan. Now and then the mirror of a machine has a newer
// version of one than those of the others.
func (m *machine) addPackages(plan message.ChangeSet, job strategy.Job) message.ChangeSet {
	if job.Release == nil || job.Release.Packages == nil {
		return plan
	}
	to := "1"
	if m.w.rng.chance("mirror/"+m.name, 0.1) {
		to = "2"
	}
	plan.Changes = append(plan.Changes, message.Change{Name: library, From: "0", To: to})
	return plan.Sorted()
}

// getsTheSame judges that a machine upgrades to the version of a package that other machines have got
// in the same run, if its release says so. The site knows the plan of a machine
// or of its clone, so clones are not judged. The world's lock is held.
func (w *World) getsTheSame(m *machine, job strategy.Job) {
	if m.cloned || job.Release == nil || job.Release.Packages == nil || !job.Release.Packages.Same {
		return
	}
	for _, c := range job.Plan.Changes {
		if c.Name != library {
			continue
		}
		if w.libraries == nil {
			w.libraries = map[uint64]string{}
		}
		if was := w.libraries[job.Run]; was != "" && was != c.To {
			w.violated("%s upgrades %s to %s in run %d, and another host to %s", m.name, library, c.To, job.Run, was)
		}
		w.libraries[job.Run] = c.To
		w.count("upgrades to what all others get")
	}
}

// releaseOfJob is the release of a job, by its name and digest; empty for none.
func releaseOfJob(job strategy.Job) string {
	if job.Release == nil {
		return ""
	}
	return job.ReleaseName + " " + job.Release.Digest()
}

// knownWithdrawn are the releases that a controller was given as withdrawn, by name, and when.
type knownWithdrawn struct {
	mu sync.Mutex
	at map[string]withdrawnAt
}

type withdrawnAt struct {
	digest string
	at     time.Time
}

// forget notes that the controller reads the releases anew.
func (k *knownWithdrawn) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = nil
}

// again notes that the controller may learn only now what it was given.
func (k *knownWithdrawn) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, w := range k.at {
		w.at = time.Now()
		k.at[name] = w
	}
}

// give notes that the controller is given a release just now; nil is none.
func (k *knownWithdrawn) give(name string, r *v1.Release) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, was := k.at[name]
	delete(k.at, name)
	if r == nil || r.Withdrawn == nil {
		return
	}
	now := withdrawnAt{r.Digest(), time.Now()}
	if was && before.digest == now.digest {
		now = before
	}
	if k.at == nil {
		k.at = map[string]withdrawnAt{}
	}
	k.at[name] = now
}

// known are the releases that the controller was given as withdrawn long enough ago to act on that.
func (k *knownWithdrawn) known() (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, w := range k.at {
		if time.Since(w.at) > oracle.Reaction {
			all = append(all, name+" "+w.digest)
		}
	}
	return all
}
