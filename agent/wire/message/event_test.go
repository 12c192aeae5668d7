package message

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestEventBodies checks what events look like on the log, and that they are
// read as they were written.
func TestEventBodies(t *testing.T) {
	t.Parallel()
	unseen := map[string]bool{}
	for name := range readers {
		unseen[name] = true
	}
	for body, event := range eventBodies() {
		if got := string(EncodeEvent(event)); got != body {
			t.Errorf("the body is %s, not %s", got, body)
		}
		if got, err := DecodeEvent([]byte(body)); err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%s is read as %+v, %v", body, got, err)
		}
		delete(unseen, Name(event))
	}
	if len(unseen) > 0 {
		t.Errorf("there is no example of %v", unseen)
	}
}

// eventBodies are examples of all events, by their bodies.
func eventBodies() map[string]Event {
	opens := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	end := opens.Add(4 * time.Hour)
	policy := string(encode(rollout.Default(2)))
	spring := release.Release{Version: "2.0", Scheme: release.Semver, From: []string{">= 1.0, < 2.0"}, Data: []byte(`{"a":"<b>"}`)}.Pin("spring")
	return map[string]Event{
		`{"event":"opened","trigger":"window","members":["h01","h03"],"roster":[{"host":"h03","silent":true},` +
			`{"host":"h02","stage":"all","since":"2026-11-21T01:00:00Z","owes":{"answer":"upgrade","undrain":true,"checks":"after-host"}},{"host":"h04","works":"reboot"}],"policy":` + policy +
			`,"window":"2026-11-21T01:00:00Z","window-end":"2026-11-21T05:00:00Z","not-after":"2026-11-21T05:00:00Z"}`: Opened{
			Trigger: TriggerWindow, Members: []string{"h01", "h03"}, Rollout: rollout.Default(2), Window: opens, WindowEnd: end, NotAfter: end,
			Roster: []Entry{{Host: "h03", Silent: true}, {Host: "h02", Stage: "all", Since: opens, Owes: Debt{Answer: Upgrade, Undrain: true, Checks: AfterHost}}, {Host: "h04", Works: Reboot}},
		},
		`{"event":"opened","trigger":"manual","members":["h01","h02"],"policy":` + policy + `,"not-after":"2026-11-21T05:00:00Z","by":"ann","why":"CVE"}`: Opened{
			Trigger: TriggerManual, Members: []string{"h01", "h02"}, Rollout: rollout.Default(2), NotAfter: end, By: "ann", Why: "CVE",
		},
		`{"event":"opened","trigger":"manual","members":["h01","h02"],"policy":` + policy + `,"release":{"name":"spring","digest":"` + spring.Digest + `","text":` + string(spring.Text) + `},"not-after":"2026-11-21T05:00:00Z"}`: Opened{
			Trigger: TriggerManual, Members: []string{"h01", "h02"}, Rollout: rollout.Default(2), Release: &spring, NotAfter: end,
		},
		`{"event":"opened","trigger":"manual","members":["h01","h02"],"policy":` + policy + `,"rollback-of":57,"rollback-since":41,"not-after":"2026-11-21T05:00:00Z"}`: Opened{
			Trigger: TriggerManual, Members: []string{"h01", "h02"}, Rollout: rollout.Default(2), RollbackOf: 57, RollbackSince: 41, NotAfter: end,
		},
		`{"event":"silent","hosts":["h03"]}`:                              Silent{Hosts: []string{"h03"}},
		`{"event":"recovered","hosts":["h03"]}`:                           Recovered{Hosts: []string{"h03"}},
		`{"event":"deleted","hosts":["h03"],"by":"ann","why":"scrapped"}`: Deleted{Hosts: []string{"h03"}, By: "ann", Why: "scrapped"},
		`{"event":"released","host":"h03","by":"ann","why":"dead"}`:       Released{Host: "h03", By: "ann", Why: "dead"},
		`{"event":"differing","packages":[{"name":"libssl3","system":"debian 12 amd64","versions":[{"version":"3.0.15","count":40},{"version":"3.0.16","count":2,"hosts":["c7","c9"]}]}],"more":3,"refused":[{"hosts":["c7","c9"],"why":"because"}]}`: Differing{
			Packages: []DifferingPackage{{Name: "libssl3", System: "debian 12 amd64", Versions: []PlannedVersion{{Version: "3.0.15", Count: 40}, {Version: "3.0.16", Count: 2, Hosts: []string{"c7", "c9"}}}}},
			More:     3, Refused: []Refusal{{Hosts: []string{"c7", "c9"}, Why: "because"}},
		},
		`{"event":"admitted","host":"h01"}`: Admitted{Host: "h01"},
		`{"event":"slot","host":"h01"}`:     Slot{Host: "h01"},
		`{"event":"ran","outcome":{"run":7,"kind":"drain","host":"h01","attempt":0,"ok":true}}`: Ran{Outcome: Outcome{Run: 7, Kind: Drain, Host: "h01", OK: true}},
		`{"event":"begun","stage":"swact","host":"c1"}`:                                         Begun{Stage: "swact", Host: "c1"},
		`{"event":"ran","outcome":{"run":7,"kind":"step","stage":"join","attempt":1,"ok":true,"outputs":{"names":["JOIN"],"sealed":"x"}}}`: Ran{
			Outcome: Outcome{Run: 7, Kind: Step, Stage: "join", Attempt: 1, OK: true, Outputs: &Outputs{Names: []string{"JOIN"}, Sealed: "x"}},
		},
		`{"event":"overdue","hosts":["h01"],"action":"upgrade"}`:           Overdue{Hosts: []string{"h01"}, Awaited: Awaited{Action: Upgrade}},
		`{"event":"late","hosts":["h02","h03"]}`:                           Late{Hosts: []string{"h02", "h03"}},
		`{"event":"unprepared","host":"h03","doing":"40% fetching lists"}`: Unprepared{Host: "h03", Doing: "40% fetching lists"},
		`{"event":"cancelled","hosts":["h01"],"task":"drain"}`:             Cancelled{Hosts: []string{"h01"}, Awaited: Awaited{Task: Drain}},
		`{"event":"approved","stage":"all","by":"ann"}`:                    Approved{Stage: "all", By: "ann"},
		`{"event":"paused"}`:                                   Paused{},
		`{"event":"resumed","by":"ann"}`:                       Resumed{By: "ann"},
		`{"event":"aborted","by":"ann","why":"wrong release"}`: Aborted{By: "ann", Why: "wrong release"},
		`{"event":"frozen","freeze":"christmas","not-after":"2026-11-21T01:00:00Z","until":"2026-11-21T05:00:00Z"}`: Frozen{Freeze: "christmas", NotAfter: opens, Until: end},
		`{"event":"missed","window":"2026-11-21T01:00:00Z","window-end":"2026-11-21T05:00:00Z","reason":"away"}`:    Missed{Window: opens, WindowEnd: end, Reason: "away"},
		`{"event":"busy","host":"h01","reason":"backup","until":"2026-01-05T03:30:00Z"}`:                            Busy{Host: "h01", NotNow: NotNow{Reason: "backup", Until: time.Date(2026, 1, 5, 3, 30, 0, 0, time.UTC)}},
		`{"event":"idle","host":"h01"}`: Idle{Host: "h01"},
		`{"event":"skipped","to":1061}`: Skipped{To: 1061},
		`{"event":"budgeted","budgets":"v2","cells":[{"budget":"racks","label":"rack","value":"r1","max-unavailable":1,"hosts":["h01"]}]}`: Budgeted{
			Budgets: "v2", Cells: []Cell{{Budget: "racks", Label: "rack", Value: "r1", MaxUnavailable: 1, Hosts: []string{"h01"}}},
		},
		`{"event":"locked","host":"h01"}`: Locked{Host: "h01"},
		`{"event":"locked","host":"h01","environment":"basel","since":"2026-11-21T01:00:00Z","by":"zincati","budgets":"v1","cells":[{"budget":"racks","label":"rack","value":"r1","max-unavailable":1,"hosts":["h01"]}]}`: Locked{
			Host: "h01", Environment: "basel", Since: opens, By: "zincati", Budgets: "v1", Cells: []Cell{{Budget: "racks", Label: "rack", Value: "r1", MaxUnavailable: 1, Hosts: []string{"h01"}}},
		},
		`{"event":"unlocked","host":"h01","by":"ann","why":"it is dead"}`: Unlocked{Host: "h01", By: "ann", Why: "it is dead"},
		`{"event":"finished","result":"partial"}`:                         Finished{Result: "partial"},
		`{"event":"opened","environment":"basel","trigger":"manual","members":["h01","h02"],"roster-as-of":7,"policy":` + policy + `,"not-after":"2026-11-21T05:00:00Z"}`: Opened{
			Environment: "basel", Trigger: TriggerManual, Members: []string{"h01", "h02"}, RosterAsOf: 7, Rollout: rollout.Default(2), NotAfter: end,
		},
		`{"event":"opened","environment":"basel","trigger":"manual","members":["h01","h02"],"policy":` + policy + `,"chosen":true,"follows":[{"environment":"bern","run":41},{"run":7}],"override-after":"CVE","completed":[{"run":9,"at":"2026-11-21T01:00:00Z"}],"not-after":"2026-11-21T05:00:00Z"}`: Opened{
			Environment: "basel", Trigger: TriggerManual, Members: []string{"h01", "h02"}, Rollout: rollout.Default(2), NotAfter: end,
			Chosen: true, Follows: []Follow{{"bern", 41}, {"", 7}}, OverrideAfter: "CVE", Completed: []Completion{{9, opens}},
		},
		`{"event":"carried","run":41,"follows":[{"environment":"bern","run":9}],"completed":[{"run":41,"at":"2026-11-21T01:00:00Z"}]}`: Carried{
			Run: 41, Follows: []Follow{{"bern", 9}}, Completed: []Completion{{41, opens}},
		},
		`{"event":"missed","environment":"basel","window":"2026-11-21T01:00:00Z","window-end":"2026-11-21T05:00:00Z"}`: Missed{Environment: "basel", Window: opens, WindowEnd: end},
		`{"event":"carried","environment":"basel","run":41,"considered":"2026-11-21T01:00:00Z","roster":[{"host":"h03","since":"2026-11-21T01:00:00Z","owes":{"look":true}}]}`: Carried{
			Environment: "basel", Run: 41, Considered: opens, Roster: []Entry{{Host: "h03", Since: opens, Owes: Debt{Look: true}}},
		},
	}
}

// TestMalformedEvents checks that an event is what it says, names its hosts, each
// once, and has all its members and no others.
func TestMalformedEvents(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"event":"recovered"}`:                             "hosts is empty",
		`{"event":"recovered","hosts":[]}`:                  "hosts is empty",
		`{"event":"recovered","hosts":["a b"]}`:             `"a b" is not a host name`,
		`{"event":"recovered","hosts":["h1","h1"]}`:         "h1 is named twice",
		`{"event":"recovering","hosts":["h"]}`:              "there is no such event",
		`{"event":"deleted","hosts":"h03"}`:                 `cannot read event "deleted"`,
		`{"hosts":["h03"],"event":"deleted"}`:               "does not begin with",
		`{"event":"deleted`:                                 "does not begin with",
		`{"event":"deleted"`:                                `cannot read event "deleted"`,
		`{"event":"admitted"}`:                              `"" is not a host name`,
		`{"event":"overdue","hosts":["h1"],"task":"dance"}`: `neither action "" nor task "dance" is known`,
		`{"event":"cancelled","hosts":["h1"]}`:              "is known",
		`{"event":"ran"}`:                                   "outcome is missing",
		`{"event":"approved"}`:                              "stage is missing",
		`{"event":"begun"}`:                                 "stage is missing",
		`{"event":"begun","stage":"a","host":"a b"}`:        `"a b" is not a host name`,
		`{"event":"ran","outcome":{"run":7,"kind":"step","stage":"a","outputs":{"values":{"A":"secret"}}}}`: "its outputs are not sealed",
		`{"event":"ran","outcome":{"run":7,"kind":"step","stage":"a","outputs":{"names":["A"]}}}`:           "its outputs are missing",
		`{"event":"frozen","freeze":"x"}`:                                     "not-after is missing",
		`{"event":"frozen","not-after":"2026-11-21T05:00:00Z"}`:               "until is missing",
		`{"event":"missed","window":"2026-11-21T05:00:00Z"}`:                  "window-end is missing",
		`{"event":"skipped"}`:                                                 "to is missing",
		`{"event":"finished"}`:                                                "result is missing",
		`{"event":"opened","environment":"Basel"}`:                            `environment "Basel" is not a name: use 1 to 63 of`,
		`{"event":"opened","environment":"default"}`:                          `environment is "default": on the log the default environment has no name`,
		`{"event":"opened","environment":7}`:                                  `cannot read event "opened"`,
		`{"event":"missed","environment":"a.b"}`:                              `environment "a.b" is not a name`,
		`{"event":"carried","environment":"-"}`:                               `environment "-" is not a name`,
		`{"event":"carried"}`:                                                 "run is missing",
		`{"event":"carried","run":1,"follows":[{"run":2}]}`:                   `follows: environment "" follows itself`,
		`{"event":"carried","run":1,"follows":[{"environment":"-","run":2}]}`: `follows: environment "-" is not a name`,
		`{"event":"carried","run":1,"follows":[{"environment":"bern"}]}`:      `follows: run of environment "bern" is missing`,
		`{"event":"carried","run":1,"follows":[{"environment":"bern","run":2},{"environment":"bern","run":3}]}`:                   `follows: environment "bern" is named twice`,
		`{"event":"carried","run":1,"completed":[{"run":2}]}`:                                                                     "completed: run or at is missing",
		`{"event":"carried","run":1,"completed":[{"run":2,"at":"2026-11-21T01:00:00Z"},{"run":2,"at":"2026-11-21T01:00:00Z"}]}`:   "completed: run 2 is not after run 2",
		`{"event":"carried","run":1,"completed":[` + strings.Repeat(`{"run":2,"at":"2026-11-21T01:00:00Z"},`, 32) + `{"run":2}]}`: "completed: 33 runs are too many",
		`{"event":"locked"}`: `"" is not a host name`,
		`{"event":"locked","host":"h1","environment":"default"}`:                                     `on the log the default environment has no name`,
		`{"event":"locked","host":"h1","cells":[{"budget":"b","max-unavailable":1,"hosts":["h2"]}]}`: "h1: cells: h2 of budget b is not among the hosts",
		`{"event":"unlocked"}`:                                                      `"" is not a host name`,
		`{"event":"carried","run":-1}`:                                              `cannot read event "carried"`,
		`{"event":"carried","run":1,"roster":[{"host":"a b"}]}`:                     `roster: "a b" is not a host name`,
		`{"event":"carried","run":1,"roster":[{"host":"h1"},{"host":"h1"}]}`:        "roster: h1 is named twice",
		`{"event":"carried","run":1,"roster":[{"host":"h1","stage":"all"}]}`:        `roster: h1 has stage "all"`,
		`{"event":"carried","run":1,"roster":[{"host":"h1","owes":{"look":true}}]}`: "roster: h1 owes something, and since is missing",
	} {
		if _, err := DecodeEvent([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v and does not say %q", body, err, want)
		}
	}
}

// TestMalformedRoster checks that the hosts with which a run is opened are named,
// each once, with what they owe.
func TestMalformedRoster(t *testing.T) {
	t.Parallel()
	for roster, want := range map[string]string{
		`[{"host":"a b"}]`: `"a b" is not a host name`,
		`[{"host":"h01","silent":true},{"host":"h01","silent":true}]`: `h01 is named twice`,
		`[{"host":"h01","stage":"all"}]`:                              `h01 is a member`,
		`[{"host":"h09","stage":"none"}]`:                             `"none", which is none of the policy's`,
		`[{"host":"h09","silent":true}]`:                              `neither a member nor of a stage`,
		`[{"host":"h01","owes":{"look":true}}]`:                       `owes something, and since is missing`,
		`[{"host":"h01","since":"2026-11-21T01:00:00Z"}]`:             `has since, and neither owes anything nor is silent`,
		`[{"host":"h01","owes":{"answer":"dance"}}]`:                  `"dance", which is no action`,
		`[{"host":"h01","owes":{"checks":"fleet"}}]`:                  `"fleet", which are no checks of a host`,
		`[{"host":"h01","since":"yesterday"}]`:                        "cannot read event",
	} {
		body := strings.Replace(string(EncodeEvent(Opened{Members: []string{"h01"}, Rollout: rollout.Default(1), NotAfter: time.Now()})),
			`"policy"`, `"roster":`+roster+`,"policy"`, 1)
		if _, err := DecodeEvent([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v and does not say %q", roster, err, want)
		}
	}
}
