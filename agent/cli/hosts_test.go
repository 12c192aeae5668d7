package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestForget checks that a host that is forgotten is listed no more.
func TestForget(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"})
	for _, c := range []struct{ host, form, want string }{
		{"h01", "text", "Host h01 of tenant acme is deleted"},
		{"h02", "json", `"forgotten": "h02"`},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "forget", c.host, "--reason", "scrapped", "--output", c.form)...)
		if code != exitOK || !strings.Contains(stdout, c.want) {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		if code, stdout, _ := call(t, as(t, s.URL, s.Token, "acme", "hosts")...); code != exitOK || strings.Contains(stdout, c.host) {
			t.Errorf("after %s was forgotten the hosts are:\n%s", c.host, stdout)
		}
	}
}

// TestHostsOfALargeFleet checks that a list which does not show all hosts says how many it leaves out, and
// how to see them.
func TestHostsOfALargeFleet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent, lines int
		args          []string
		want          string
	}{
		{0, 2, nil, "400 hosts: 400 online, 0 unhealthy.\n400 healthy hosts not shown; --all shows them.\n"},
		{3, 6, nil, "397 healthy hosts not shown; --all shows them.\n"},
		{400, 402, nil, "400 hosts: 0 online, 400 unhealthy.\n"},
		{3, 402, []string{"--all"}, "h399"},
		{0, 2, []string{"--unhealthy"}, "No host is unhealthy.\n"},
		{3, 5, []string{"--unhealthy"}, "h002"},
		{0, 52, []string{"--limit", "50"}, "There may be more: --limit 50 --after h049 shows the next part.\n"},
	} {
		s := fakeapi.New(t)
		var hosts []v1.Host
		for n := range 400 {
			hosts = append(hosts, v1.Host{Hostname: fmt.Sprintf("h%03d", n), Application: "app", Online: n >= c.silent})
		}
		s.SetHosts("acme", hosts...)
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", append([]string{"hosts"}, c.args...)...)...)
		if code != exitOK || !strings.Contains(stdout, c.want) || strings.Count(stdout, "\n") != c.lines {
			t.Errorf("%d silent, %q: exit code %d, %d lines and not %d with %q:\n%.300s%s", c.silent, c.args, code, strings.Count(stdout, "\n"), c.lines, c.want, stdout, stderr)
		}
	}
}

// TestHosts checks what is printed of the hosts, and of one of them.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	at := func(day int) *time.Time {
		t := time.Date(2026, 11, day, 1, 30, 0, 0, time.UTC)
		return &t
	}
	s.SetHosts("acme",
		v1.Host{
			Hostname: "h01", Application: "app", Online: true, LastSeen: at(22), AgentVersion: "1.2.3", Protocol: 1, Role: "web", Strategy: "apt",
			Labels: map[string]string{"rack": "r12", "ring": "0"}, Versions: map[string]string{"kernel": "6.2", "vim": "9.1"}, VersionsAt: at(21),
			LastRun: &v1.HostRun{ID: 41, Phase: "finished", Result: "partial", Status: "failed", EndedAt: at(20)}, MissedSince: at(13), OutdatedSince: at(14),
			Lease: &v1.HostLease{Worker: "W1", Incarnation: "P1", Epoch: 2, Since: *at(1)},
			Reports: []v1.VersionReport{
				{At: *at(21), Changed: 2, Changes: []v1.VersionChange{{Package: "kernel", From: "6.1", To: "6.2"}, {Package: "vim", To: "9.1"}}},
				{At: *at(20), Changed: 900, Changes: []v1.VersionChange{{Package: "emacs", From: "30"}}},
				{At: *at(19)},
				{At: *at(18)},
			},
		},
		v1.Host{Hostname: "h02", Application: "app", Warnings: []v1.Warning{{Host: "h02", Kind: "clock", Text: "its clock is wrong: set it", Since: *at(2)}}, LastRun: &v1.HostRun{ID: 42, Phase: "upgrading", Status: "pending"}},
		v1.Host{Hostname: "h03", Application: "other"},
	)
	s.SetState("acme", v1.State{Situation: v1.Situation{WarningCount: 22, Warnings: []v1.Warning{
		{Host: "h02", Kind: "clock", Text: "its clock is wrong: set it", Since: *at(2)},
		{Host: "h77", Kind: "key-refused", Text: "make a key", Since: *at(3)},
	}}})
	s.SetOffer("acme", "h01", v1.HostPlan{
		At: time.Now(), Changes: []v1.VersionChange{{Package: "kernel", From: "6.2", To: "6.3"}}, Held: []v1.HeldPackage{{Package: "libc6", Reason: "held by apt-mark"}}, Reboot: "the kernel changes",
	})
	for command, want := range map[string]string{
		"hosts": `HOST  APPLICATION  ONLINE  OUTDATED SINCE               LAST RUN                                             VERSIONS
h01   app          yes     Sat 2026-11-14 02:30:00 CET  41 failed, missed since Fri 2026-11-13 02:30:00 CET  kernel 6.2, vim 9.1
h02   app          no                                   42 pending
h03   other        no                                   -

WARNING  SINCE                        WHAT
h02      Mon 2026-11-02 02:30:00 CET  its clock is wrong: set it
h77      Tue 2026-11-03 02:30:00 CET  make a key
and 20 more
`,
		"hosts h01": `host:                           h01
application:                    app
online:                         yes, last seen at Sun 2026-11-22 02:30:00 CET
role:                           web
labels:                         rack=r12, ring=0
strategy:                       apt
agent version:                  1.2.3, protocol 1
lease:                          worker W1, process P1, epoch 2, since Sun 2026-11-01 02:30:00 CET
last run:                       41, partial at Fri 2026-11-20 02:30:00 CET; this host: failed
outdated since:                 Sat 2026-11-14 02:30:00 CET
missed since:                   Fri 2026-11-13 02:30:00 CET: no run has upgraded it since
next upgrade:                   1 change, 1 held, a reboot: the kernel changes
versions:                       reported at Sat 2026-11-21 02:30:00 CET
  kernel:                       6.2
  vim:                          9.1
reports:
  Sat 2026-11-21 02:30:00 CET:  kernel 6.1 to 6.2, vim 9.1 is new
  Fri 2026-11-20 02:30:00 CET:  emacs 30 is gone and 899 more
  Thu 2026-11-19 02:30:00 CET:  no version has changed
  Wed 2026-11-18 02:30:00 CET:  the first report
`,
		"hosts h02": `host:           h02
application:    app
online:         no, not heard of since the site was started
role:           none
labels:         none
agent version:  unknown
lease:          no worker has ever held it
last run:       42, upgrading; this host: pending
next upgrade:   changes unknown
warning:        its clock is wrong: set it (since Mon 2026-11-02 02:30:00 CET)
versions:       none reported
`,
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(command)...)...)
		if code != exitOK || stdout != want {
			t.Errorf("%s prints, with code %d,\n%s%s\nnot\n%s", command, code, stdout, stderr, want)
		}
	}
}

// TestOneHost checks what is printed of a host in the rarer cases.
func TestOneHost(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	at := time.Date(2026, 11, 13, 1, 30, 0, 0, time.UTC)
	s.SetHosts("acme", v1.Host{Hostname: "h03", OutdatedSince: &at, Lease: &v1.HostLease{Worker: "W3", Epoch: 1, Since: at, Vacant: true}})
	if code, stdout, _ := call(t, as(t, s.URL, s.Token, "acme", "hosts", "h03", "--output", "json")...); code != exitOK || !strings.Contains(stdout, `"outdated-since": "2026-11-13T01:30:00Z"`) {
		t.Errorf("as JSON it is, with code %d,\n%s", code, stdout)
	}
	if _, stdout, _ := call(t, as(t, s.URL, s.Token, "acme", "hosts", "h03")...); !strings.Contains(stdout, "given back by worker W3") {
		t.Errorf("of a lease that was given back it prints\n%s", stdout)
	}
	if code, _, stderr := call(t, as(t, s.URL, s.Token, "acme", "hosts", "h77")...); code != exitFailed || !strings.Contains(stderr, `host "h77" is not known`) {
		t.Errorf("of a host that is not known it prints, with code %d,\n%s", code, stderr)
	}
}

// TestHostsInParts checks what is shown of a part of the hosts, and what is said to who asks
// for one that is none.
func TestHostsInParts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01", Application: "app"}, v1.Host{Hostname: "h02", Application: "app"}, v1.Host{Hostname: "h03", Application: "app"})
	for arguments, want := range map[string]string{
		"--limit 2":             "h01   app          no      -\nh02   app          no      -\nThere may be more: --limit 2 --after h02 shows the next part.\n",
		"--limit 2 --after h02": "HOST  APPLICATION  ONLINE  LAST RUN\nh03   app          no      -\n",
		"--after h03":           "No host to show.\n",
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", append([]string{"hosts"}, strings.Fields(arguments)...)...)...)
		if code != exitOK || !strings.HasSuffix(stdout, want) {
			t.Errorf("hosts %s: exit code %d:\n%s%s; want at the end\n%s", arguments, code, stdout, stderr, want)
		}
	}
	for arguments, part := range map[string]string{
		"h01 --limit 1":  "--limit and --after are for the list of hosts; leave them out, or leave out the HOST",
		"h01 --after h0": "--limit and --after are for the list of hosts; leave them out, or leave out the HOST",
		"--limit 1001":   "limit: 1001 is out of range; use 1 to 1000",
		"--after /":      `after: "/" is not the name of a host`,
	} {
		code, _, stderr := call(t, as(t, "http://127.0.0.1:1", "osu_x", "acme", append([]string{"hosts"}, strings.Fields(arguments)...)...)...)
		if code != exitUsage || !strings.Contains(stderr, part) {
			t.Errorf("hosts %s: exit code %d:\n%s", arguments, code, stderr)
		}
	}
}

// TestChosenHosts checks which hosts the flags of a selector list, and what is said if there are none.
func TestChosenHosts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	host := func(name, shop, role string) v1.Host {
		return v1.Host{Hostname: name, Application: "app", Online: true, Role: role, Labels: map[string]string{"shop": shop, "zone": "a"}}
	}
	s.SetHosts("acme", host("h01", "basel", "till"), host("h02", "basel", "scale"), host("h03", "bern", "till"), host("h04", "chur", "till"))
	for _, c := range []struct {
		args  string
		hosts string
		says  string
	}{
		{"--label shop=basel", "h01 h02", ""},
		{"--label shop=basel,bern --role till", "h01 h03", ""},
		{"--label shop=basel --label zone=a --role till --role scale", "h01 h02", ""},
		{"--host h01,h04 --host h02 --role till", "h01 h04", ""},
		{"--label shop=basel --limit 1", "h01", "There may be more: --label shop=basel --limit 1 --after h01 shows the next part.\n"},
		{"--label shop=bsel", "", `No host matches --label shop=bsel: no known host has "bsel" as label shop; hosts have basel, bern, chur.` + "\n"},
		{"--label ship=basel", "", `No host matches --label ship=basel: no known host has label "ship"; did you mean shop?` + "\n"},
		{"--role printer --host h09", "", `No host matches --host h09 --role printer: no known host has name "h09"; did you mean h01?; no known host has role "printer"; hosts have scale, till.` + "\n"},
		{"--label shop=chur --role scale", "", "No host matches --label shop=chur --role scale: each part matches a known host, and no known host matches all of them.\n"},
		{"--label shop=chur --role scale --output json", "", "[]\n"},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", append([]string{"hosts"}, strings.Fields(c.args)...)...)...)
		var hosts []string
		for line := range strings.Lines(stdout) {
			if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "h0") {
				hosts = append(hosts, name)
			}
		}
		if code != exitOK || strings.Join(hosts, " ") != c.hosts || !strings.HasSuffix(stdout, c.says) {
			t.Errorf("hosts %s: exit code %d, want %q and %q:\n%s%s", c.args, code, c.hosts, c.says, stdout, stderr)
		}
	}
	for args, says := range map[string]string{
		"--label shop":                         `--label: "shop" is not a label; use KEY=VALUE, or KEY=VALUE,VALUE for one of several values`,
		"--label shop=basel --label shop=bern": `--label: "shop=bern" gives a key twice, but a host has only one value for it; to choose either: shop=basel,bern`,
		"--label shop=basel,":                  `--label: "basel," has a comma with no value next to it; use VALUE,VALUE for one of several`,
		"--label a!=b":                         `--label: "a!" is not the key of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`,
		"--host x-":                            `--host: "x-" is not the name of a host`,
		"h01 --label shop=basel":               "--host, --label and --role choose several hosts; leave them out, or leave out the HOST",
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", append([]string{"hosts"}, strings.Fields(args)...)...)...)
		if code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("hosts %s: exit code %d, without %s:\n%s%s", args, code, says, stdout, stderr)
		}
	}
}

// TestRefreshHosts checks that hosts --refresh has all hosts or one look for what an upgrade would
// change, and what it says of those that cannot.
func TestRefreshHosts(t *testing.T) {
	t.Parallel()
	const shows = " Each reports it when it has fetched its lists: osupgrade-agent start --dry-run shows it.\n"
	play(t, intended{windows: saturdays}, threeHosts, func(s *scene) {
		s.silence("h03")
		s.pass(5 * time.Minute)
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"hosts", "--refresh", "h01"}, "1 host checks now what an upgrade would change." + shows},
			{[]string{"hosts", "--refresh"}, "1 host checks now what an upgrade would change; 1 was asked less than a minute ago; 1 is silent." + shows},
			{[]string{"hosts", "--refresh", "--output", "json"}, `"silent": 1,`},
			{[]string{"hosts", "--refresh", "h77"}, "host h77: there is no such host; osupgrade-agent hosts lists those that are known"},
			{[]string{"hosts", "--refresh", "--offer", "h01"}, "--refresh shows no hosts; leave out --offer, --limit and --after"},
		} {
			if out := s.types(c.args...); !strings.Contains(out, c.want) {
				t.Errorf("%q prints %s, without %s", c.args, out, c.want)
			}
		}
	})
}

// TestWideHosts checks that hosts --wide shows the role, the labels, the strategy and the agent of each.
func TestWideHosts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme",
		v1.Host{Hostname: "h01", Application: "app", Online: true, AgentVersion: "1.2.3", Role: "till", Labels: map[string]string{"ring": "0", "rack": "r12"}, Strategy: "rauc"},
		v1.Host{Hostname: "h02", Application: "app", Online: true, Strategy: "exec"},
		v1.Host{Hostname: "h03", Application: "app"},
	)
	const want = `HOST  APPLICATION  ONLINE  LAST RUN  ROLE  LABELS            STRATEGY  AGENT
h01   app          yes     -         till  rack=r12, ring=0  rauc      1.2.3
h02   app          yes     -         none  none              exec      unknown
h03   app          no      -         none  none              unknown   unknown
`
	if code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "hosts", "--wide")...); code != exitOK || stdout != want {
		t.Errorf("with code %d:\n%s%s", code, stdout, stderr)
	}
}
