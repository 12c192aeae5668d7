package window

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // A minimal machine has no zone data of its own.
)

// SiteLocal is the timezone of a window that goes by the clock of its site
// (AV-18).
const SiteLocal = "site-local"

// Zone is where a window's days and start are read: site-local, UTC or a zone
// of the IANA time zone database. The zero value is site-local.
type Zone struct {
	// location is the one in zones, so that equal zones compare equal.
	location *time.Location
}

// zones keeps the location of each zone seen, by name. Only zones that exist
// get in, so that it cannot grow past the database.
var zones = struct {
	sync.Mutex
	known map[string]*time.Location
}{known: map[string]*time.Location{}}

// zonePath is stricter than time.LoadLocation, which on a machine with a zone
// folder would also take "Europe//Rome", "localtime" or "right/UTC".
var zonePath = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*){0,2}$`)

// ParseZone reads "site-local", "UTC" or an IANA name such as
// "Europe/Stockholm"; empty means site-local (AV-18). Offsets such as "+02:00"
// are errors, since they are wrong for half of the year. The error for a name
// that does not exist names the closest one that does.
func ParseZone(text string) (Zone, error) {
	switch text {
	case "", SiteLocal:
		return Zone{}, nil
	case "UTC":
		return Zone{location: time.UTC}, nil
	}
	zones.Lock()
	defer zones.Unlock()
	if location, ok := zones.known[text]; ok {
		return Zone{location: location}, nil
	}
	if !plausible(text) {
		return Zone{}, unknownZone(text)
	}
	location, err := time.LoadLocation(text)
	if err != nil {
		return Zone{}, unknownZone(text)
	}
	zones.known[text] = location
	return Zone{location: location}, nil
}

// plausible reports whether text may be an IANA name. The listed names decide
// where they can; a zone of a later release of the database needs only to lie
// in a known area.
func plausible(text string) bool {
	if !zonePath.MatchString(text) {
		return false
	}
	folded := func(name string) bool { return strings.EqualFold(name, text) }
	if i := slices.IndexFunc(zoneNames(), folded); i >= 0 {
		return zoneNames()[i] == text
	}
	area, _, inArea := strings.Cut(text, "/")
	_, known := zoneAreas[area]
	return inArea && known
}

func unknownZone(text string) error {
	const hint = "use site-local, UTC or an IANA name"
	if closest, ok := closestZone(text); ok {
		return fmt.Errorf("%s is not a time zone; %s; did you mean %s?", quote(text), hint, closest)
	}
	return fmt.Errorf("%s is not a time zone; %s such as Europe/Stockholm", quote(text), hint)
}

// closestZone finds the zone that a person most likely meant: by its full name
// or by its last element, which is what people remember.
func closestZone(text string) (string, bool) {
	if len(text) > maxGuess {
		return "", false
	}
	text = strings.ReplaceAll(strings.TrimSpace(text), " ", "_")
	names := append([]string{SiteLocal, "UTC"}, zoneNames()...)
	cities := make([]string, len(names))
	for i, name := range names {
		cities[i] = lastElement(name)
		if strings.EqualFold(name, text) || strings.EqualFold(cities[i], lastElement(text)) {
			return name, true
		}
	}
	if name, ok := Closest(text, names); ok {
		return name, true
	}
	if city, ok := Closest(lastElement(text), cities); ok {
		return names[slices.Index(cities, city)], true
	}
	return "", false
}

func lastElement(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// String returns the canonical name; that of the zero value is "site-local".
func (z Zone) String() string {
	if z.location == nil {
		return SiteLocal
	}
	return z.location.String()
}

// Location returns the zone's location: site for site-local, and UTC when site
// is nil.
func (z Zone) Location(site *time.Location) *time.Location {
	switch {
	case z.location != nil:
		return z.location
	case site != nil:
		return site
	}
	return time.UTC
}
