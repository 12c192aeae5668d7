//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// recorder is outside of all processes: a pipe into which the scripts write
// what they do, in the order in which they do it.
type recorder struct {
	pipe *os.File
	mu   sync.Mutex
	all  []string
	// checked is how many lines were judged.
	checked int
	marks   int
	seen    chan string
}

const markLine = "mark "

func (r *recorder) record(path string) error {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return err
	}
	// Open for writing too, so that it never ends.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	r.pipe, r.seen = pipe, make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			if line := lines.Text(); strings.HasPrefix(line, markLine) {
				r.seen <- line
			} else {
				r.mu.Lock()
				r.all = append(r.all, line)
				r.mu.Unlock()
			}
		}
	}()
	return nil
}

func (r *recorder) close() {
	if r.pipe != nil {
		_ = r.pipe.Close()
	}
}

// lines returns what was recorded since the last call. What was written before
// the call is there: a mark of our own comes after it.
func (r *recorder) lines() ([]string, error) {
	r.marks++
	mark := fmt.Sprint(markLine, r.marks)
	if _, err := r.pipe.WriteString(mark + "\n"); err != nil {
		return nil, err
	}
	if got := <-r.seen; got != mark {
		return nil, fmt.Errorf("the recorder saw %q in place of %q", got, mark)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := r.all[r.checked:]
	r.checked = len(r.all)
	return fresh, nil
}

// deeds are what the hosts did in one run.
type deeds struct {
	run uint64
	// hosts are those that the run is to have.
	hosts []string
	// out are the hosts out of service.
	out map[string]bool
	// done counts by host and deed.
	done map[string]int
	// ready are the hosts, and the site, that were asked before the run whether it can begin.
	ready map[string]bool
	// joined and completed count how often the scripts of the steps were run.
	joined, completed int
	bad               []string
}

// violations judges what was recorded of a run that has ended, and of the hosts that it is to have.
func violations(run v1.Run, hosts, lines []string) []string {
	d := &deeds{run: run.ID, hosts: hosts, out: map[string]bool{}, done: map[string]int{}, ready: map[string]bool{}}
	for _, line := range lines {
		d.take(line)
	}
	for host := range d.out {
		d.wrong("%s is left out of service", host)
	}
	d.judge(run)
	return d.bad
}

func (d *deeds) wrong(format string, args ...any) {
	d.bad = append(d.bad, fmt.Sprintf(format, args...))
}

// take records a line: HOST DEED RUN.
func (d *deeds) take(line string) {
	host, deed, number := cutLine(line)
	switch deed {
	case "":
		d.wrong("%q was recorded", line)
		return
	case "is checked":
		return // It changes nothing, and goes on at a host that failed.
	case "is ready": // The run has no number yet.
		d.ready[host] = true
		return
	case "prepares":
		d.allReady(line)
	}
	if host == "site" && number != fmt.Sprint(d.run) {
		return // It is of the run of another environment.
	}
	d.step(host, deed, line)
	if number != fmt.Sprint(d.run) {
		d.wrong("%q was recorded during run %d", line, d.run)
	}
	if d.done[host+" "+deed]++; d.done[host+" "+deed] > 1 && (deed == "upgrade begins" || deed == "reboots") {
		d.wrong("%q happened %d times", line, d.done[host+" "+deed])
	}
	switch deed {
	case "drains":
		d.drains(host)
	case "undrains":
		delete(d.out, host)
	case "upgrade begins", "upgrade ends", "reboots", "rolls back":
		d.inService(host, line)
	}
}

// cutLine cuts a line into its host, its deed and its run. Without a run it has no deed either.
func cutLine(line string) (host, deed, number string) {
	host, rest, _ := strings.Cut(line, " ")
	if cut := strings.LastIndex(rest, " "); cut >= 0 {
		deed, number = rest[:cut], rest[cut+1:]
	}
	return host, deed, number
}

// drains takes a host out of service. The limit is that of a stage. h02 has one of its own, which begins
// once those before have ended, even with a failure that is still undrained.
func (d *deeds) drains(host string) {
	d.out[host] = true
	if d.done[host+" undrains"] > 0 {
		d.wrong("%s is drained after it was undrained", host)
	}
	if d.out["h01"] && d.out["h03"] {
		d.wrong("when %s drains, 2 hosts are out of service", host)
	}
}

// inService judges that a host is not in service while it is changed.
func (d *deeds) inService(host, line string) {
	if !d.out[host] {
		d.wrong("%q happened in service", line)
	}
}

// allReady judges that all were asked whether the run can begin before it prepares a host.
func (d *deeds) allReady(line string) {
	for _, of := range append([]string{"site"}, d.hosts...) {
		if !d.ready[of] {
			d.wrong("%q happened before %s was ready", line, of)
		}
	}
}

// step judges the order of the steps and the hosts. A script of a step may be run again, and a late one
// after its outcome.
func (d *deeds) step(host, deed, line string) {
	rest := host == "h02" || host == "h04"
	switch {
	case deed == "joins" && d.joined == 0 && (d.out["h01"] || d.out["h03"]):
		d.wrong("%q happened while a host before it is out of service", line)
	case rest && deed == "upgrade begins" && d.joined == 0:
		d.wrong("%q happened before the step before it", line)
	case deed == "completes" && d.completed == 0 && len(d.out) > 0:
		d.wrong("%q happened while hosts are out of service", line)
	case deed == "upgrade begins" && d.completed > 0:
		d.wrong("%q happened after the step after it", line)
	}
	switch deed {
	case "joins":
		d.joined++
	case "completes":
		d.completed++
	}
}

// lostReboot returns the host that was not rebooted because its worker was killed each
// time that it asked for it; empty if there is none.
func lostReboot(run v1.Run) string {
	for _, h := range run.Hosts {
		if h.Status == "failed" && strings.Contains(h.Error, "the reboot was asked for before") {
			return h.Hostname
		}
	}
	return ""
}

// judge compares what the run says with what was done.
func (d *deeds) judge(run v1.Run) {
	want := "completed"
	if slices.Contains(d.hosts, "h02") || lostReboot(run) != "" {
		want = "partial"
	}
	if run.Result != want {
		d.wrong("the run ended as %s: %s", run.Result, run.Reason)
	}
	for _, h := range run.Hosts {
		upgraded := d.done[h.Hostname+" upgrade ends"] == 1
		switch want := map[string]string{"h01": "upgraded", "h02": "failed", "h03": "upgraded", "h04": "upgraded"}[h.Hostname]; {
		case !slices.Contains(d.hosts, h.Hostname):
			d.wrong("%s is in the run of another environment", h.Hostname)
		case !upgraded:
			d.wrong("%s was upgraded %d times", h.Hostname, d.done[h.Hostname+" upgrade ends"])
		case h.Status == want:
		case h.Hostname == lostReboot(run):
			// The machine may be asked twice and not more.
		default:
			d.wrong("%s is %s: %s", h.Hostname, h.Status, h.Error)
		}
	}
	if slices.Contains(d.hosts, "h02") && d.done["h02 rolls back"] == 0 {
		d.wrong("h02 was not rolled back")
	}
	if d.joined == 0 || d.completed == 0 {
		d.wrong("its steps were done %d and %d times", d.joined, d.completed)
	}
	if len(run.Hosts) != len(d.hosts) {
		d.wrong("the run has %d hosts", len(run.Hosts))
	}
}
