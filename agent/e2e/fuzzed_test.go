package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fuzzed names for each decoder the fuzz target that reaches it: "Target" of its own package,
// or "package.Target". A text in parentheses says why a decoder has none.
var fuzzed = map[string]string{
	// What clients send: bodies, and what is in a URL or a header.
	"agent/wire/v1.DecodeOSUpgrade": "FuzzOSUpgradeJSON", "agent/wire/v1.ParseWarnings": "FuzzParseWarnings", "agent/wire/v1.DecodeRollout": "FuzzRolloutJSON", "agent/wire/v1.DecodeCalendar": "FuzzCalendarJSON",
	"agent/wire/v1.DecodeNewCalendar": "FuzzCalendarJSON", "agent/wire/v1.DecodeNewBudget": "FuzzBudgetJSON", "agent/wire/v1.DecodeNewEnvironment": "FuzzEnvironmentJSON", "agent/wire/v1.DecodeNewRelease": "FuzzReleaseJSON", "agent/wire/v1.DecodeMove": "FuzzMoveJSON", "agent/wire/v1.DecodeStart": "FuzzStartJSON", "agent/wire/v1.DecodeRefresh": "FuzzRefreshJSON", "agent/wire/v1.DecodeAskHealth": "FuzzHealthJSON", "agent/wire/v1.DecodeSkipWindow": "FuzzSkipWindow", "agent/wire/v1.ParseSelector": "FuzzParseSelector", "agent/wire/v1.DecodeAsk": "FuzzAskJSON",
	"agent/wire/v1.DecodeFleetLock": "FuzzFleetLock",
	"agent/wire/v1.DecodeNewToken":  "FuzzBodies", "agent/wire/v1.DecodeRotation": "FuzzBodies", "agent/wire/v1.DecodeUser": "FuzzBodies", "agent/wire/v1.DecodeApprole": "FuzzBodies",
	"agent/wire/v1.DecodeNewSecretID": "FuzzBodies", "agent/wire/v1.DecodeTenant": "FuzzBodies", "agent/wire/v1.DecodePolicy": "FuzzBodies", "agent/wire/v1.DecodeWebhookResend": "FuzzBodies",
	"agent/wire/v1.DecodeJoin": "FuzzBodies", "agent/wire/v1.DecodeNewJoinToken": "FuzzBodies", "agent/wire/v1.DecodeHostVerdict": "FuzzBodies", "agent/wire/v1.DecodeLogin": "FuzzBodies", "agent/wire/v1.DecodePasswordChange": "FuzzBodies",
	"agent/wire/v1.DecodeUnseal": "FuzzBodies", "agent/wire/v1.DecodeRewrap": "FuzzBodies", "agent/wire/v1.DecodeCurrentSecret": "FuzzBodies",
	"agent/wire/v1.DecodeNewSiteCertificate": "FuzzBodies", "agent/wire/v1.DecodeNewHostKey": "FuzzBodies", "agent/wire/v1.DecodeApproleLogin": "FuzzBodies", "agent/wire/v1.decode": "FuzzBodies",
	"agent/wire/release.Decode": "FuzzDecode", "agent/wire/release.ParseRef": "FuzzParseRef", "agent/wire/release.ParseRange": "FuzzParseRange",
	"agent/wire/document.Parse": "FuzzJSON", "agent/wire/document.ParseAll": "FuzzYAML", "agent/run/trace.Parse": "FuzzParse", "agent/identity/join.Parse": "FuzzParse",
	"agent/api.parseFields": "FuzzFields", "agent/api.parsePosition": "FuzzRequest",
	// Files of people, and what they type.
	"agent/api/intent.Decode": "FuzzDecode", "agent/cli/contexts.decode": "FuzzDecode",
	"agent/schedule/calendar.Parse": "FuzzParseICS", "agent/schedule/calendar.parseLine": "FuzzParseICS", "agent/schedule/calendar.parseISO": "FuzzParseICS", "agent/schedule/calendar.parseBasic": "FuzzParseICS", "agent/schedule/calendar.parseOffset": "FuzzParseICS",
	"agent/schedule/calendar.parsePlain": "FuzzParseEvent", "agent/schedule/calendar.parseRule": "FuzzParseRule",
	"agent/schedule/window.Parse": "agent/wire/v1.FuzzOSUpgradeJSON", "agent/schedule/window.ParseLength": "FuzzParseDuration", "agent/schedule/window.ParseDays": "FuzzParseDays", "agent/schedule/window.parseDay": "FuzzParseDays",
	"agent/schedule/window.ParseTimeOfDay": "FuzzParseTimeOfDay", "agent/schedule/window.ParseZone": "FuzzParseZone", "agent/schedule/window.ParseDuration": "FuzzParseDuration",
	"agent/schedule/window.ParseDurationWithin": "FuzzParseDuration",
	"agent/cli.parseLabels":                     "(an argument of the person who runs the program)", "agent/cli.parseKeys": "(an argument of the person who runs the program)",
	"agent/tell/otlp.parseURL": "(a setting of the site)", "agent/base/dial.Parse": "(a setting of the site)", "agent/base/dial.parse": "(a setting of the site)", "agent/host/download.parseAddress": "(a setting of the worker)",
	// What hosts and sites tell each other.
	"agent/wire/message.DecodeCommand": "FuzzBodies", "agent/wire/message.DecodeReply": "FuzzBodies", "agent/wire/message.DecodeEvent": "FuzzBodies", "agent/wire/message.DecodeVersions": "FuzzBodies",
	"agent/wire/message.DecodeTask": "FuzzBodies", "agent/wire/message.DecodeOutcome": "FuzzBodies", "agent/wire/message.DecodeAlive": "FuzzBodies", "agent/wire/message.DecodeProgress": "FuzzBodies",
	"agent/wire/message.DecodePlan": "FuzzBodies", "agent/wire/message.ParseOutputs": "FuzzBodies", "agent/wire/message.ParseClass": "FuzzBodies", "agent/wire/message.decoded": "FuzzBodies", "agent/wire/message.decodePrepare": "FuzzBodies", "agent/wire/message.ParseInterval": "FuzzInterval", "agent/wire/message.parseRun": "FuzzInterval",
	"agent/wire/message.decodeOne": "FuzzBodies", "agent/wire/inventory.Decode": "FuzzDecode", "agent/wire/report.Parse": "FuzzParse",
	"agent/base/prometheus.Decode": "FuzzDecode", "agent/base/prometheus.decodeVector": "FuzzDecode", "agent/base/prometheus.decodeSample": "FuzzDecode",
	// What scripts, package managers and the machine print.
	"agent/host/strategy/exec.parseVersions": "FuzzParseVersions", "agent/host/strategy/exec.parseVersionLines": "FuzzParseVersions",
	"agent/host/strategy/exec.parseVersionObject": "FuzzParseVersions", "agent/host/strategy/exec.parseLine": "FuzzParseLine",
	"agent/host/strategy/exec.parseBoot": "FuzzParsePrinted", "agent/host/strategy/exec.parsePlan": "FuzzParsePrinted", "agent/host/strategy/exec.parseMissing": "FuzzParsePrinted",
	"agent/host/strategy/apt.parseStatus": "FuzzListings", "agent/host/strategy/apt.parseRecords": "FuzzListings", "agent/host/strategy/apt.parseURIs": "FuzzListings",
	"agent/host/strategy/apt.parseConffiles": "FuzzListings", "agent/host/strategy/apt.parseVerify": "FuzzListings", "agent/host/strategy/hostfs.parseMounts": "FuzzParseMounts", "agent/host/strategy/apt.parseSources": "FuzzListings", "agent/host/strategy/apt.parseReleaseSum": "FuzzListings", "agent/host/strategy/apt.parsePolicy": "FuzzParsePolicy",
	"agent/host/strategy/apt.parseSimulation": "FuzzParseSimulation", "agent/host/strategy/apt.parseStatusLine": "FuzzParseStatusLine",
	"agent/host/strategy/dnf.parseVersionlocks": "FuzzVersionlocks", "agent/host/strategy/dnf.parseRows": "FuzzRows", "agent/host/strategy/dnf.parseRepositories": "FuzzRepositories", "agent/host/strategy/dnf.parseDatabase": "FuzzParseDatabase",
	"agent/host/strategy/ostree.parseStatus": "FuzzParseStatus", "agent/host/strategy/ostree.parseHead": "FuzzParseStatus",
	"agent/host/strategy/ostree.parseBootcStatus": "FuzzParseJSON", "agent/host/strategy/ostree.parseRPMStatus": "FuzzParseJSON",
	"agent/host/strategy/sysupdate.parse":        "FuzzParse",
	"agent/host/strategy/simulated.parseEffects": "FuzzEffects",
	"agent/host/osinfo.ParseRelease":             "FuzzParseRelease", "agent/host/hardware.parseMemory": "FuzzParse", "agent/host/hardware.parseIPv6": "FuzzParse",
	"agent/host/check.parseUnits": "FuzzParseUnits", "agent/host/labels.parse": "FuzzParse", "agent/host/download.parseRange": "FuzzDecide",
	// What a server answers to a client.
	"agent/api/client.parseClientCertificate": "(a setting of the person who runs the program)", "agent/api/client.parseEndpoint": "(a setting of the person who runs the program)", "agent/api/client.parseToken": "FuzzNextLink",
	"provider/run.parseID": "(an argument of the person who runs Terraform)",
	// What is on the disk of the site or the worker, and its alone.
	"agent/host/decide.DecodeJournal": "FuzzJournal", "agent/host/decide.DecodeBoots": summed, "agent/host/decide.DecodeAccepted": summed, "agent/host/decide.DecodePlan": summed, "agent/host/decide.DecodeKept": summed, "agent/identity/audit.decode": "FuzzDecode",
	"agent/identity/principal.decodeToken": kept, "agent/identity/principal.decodeUser": kept, "agent/identity/principal.decodeApprole": kept, "agent/identity/principal.decodeSecret": kept, "agent/identity/principal.decodePolicy": kept,
	"agent/identity/principal.decodeUses": kept, "agent/identity/join.decode": kept, "agent/log/natsd.decodeHost": kept,
	"agent/identity/tenant.decode": kept, "agent/log/gate.decodeLease": kept, "agent/log/store.decodeIntent": kept, "agent/log/store.decodeNews": kept,
}

// kept is why the decoders of what only the site writes have no target.
const kept = "(JSON that the site alone writes, with a format number)"

// summed is why those of what the worker and an operator of its host write have none.
const summed = "(JSON with a format number and a sum, that only this program writes on the host)"

// decoderName is how functions are called that read what others have written.
var decoderName = regexp.MustCompile(`^([dD]ecode|[pP]arse)([A-Z]\w*|d)?$`)

// TestDecodersAreFuzzed checks that each decoder is in the list above, and that the list names
// decoders and targets that there are.
func TestDecodersAreFuzzed(t *testing.T) {
	t.Parallel()
	decoders, targets := map[string]bool{}, map[string]bool{}
	for _, root := range []string{"agent", "provider"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "../../agent/testing/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder, _ := filepath.Rel("../..", filepath.Dir(path))
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				switch {
				case !ok || f.Recv != nil:
				case !strings.HasSuffix(path, "_test.go"):
					if decoderName.MatchString(f.Name.Name) {
						decoders[filepath.ToSlash(folder)+"."+f.Name.Name] = true
					}
				case strings.HasPrefix(f.Name.Name, "Fuzz"):
					targets[filepath.ToSlash(folder)+"."+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for decoder := range decoders {
		if fuzzed[decoder] == "" {
			t.Errorf("%s reads what others have written: name the fuzz target that reaches it, or say why it has none", decoder)
		}
	}
	for decoder, target := range fuzzed {
		if strings.HasPrefix(target, "Fuzz") {
			target = decoder[:strings.LastIndex(decoder, ".")] + "." + target
		}
		if !decoders[decoder] || !strings.HasPrefix(target, "(") && !targets[target] {
			t.Errorf("%s is fuzzed by %s: one of them is not there", decoder, target)
		}
	}
}
