package calendar

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// windowsZone returns the zone that Windows, and so Outlook and Exchange, calls by a name.
func windowsZone(name string) (window.Zone, bool) {
	zone, known := windowsZones[strings.TrimPrefix(name, "tzone://Microsoft/")]
	if !known {
		return window.Zone{}, false
	}
	found, err := window.ParseZone(zone)
	return found, err == nil
}

// observance is STANDARD or DAYLIGHT of a VTIMEZONE (RFC 5545 3.6.5).
type observance struct {
	// before and after are the offsets, in seconds, between which the clock changes; they are
	// equal if the offset is that of the whole year.
	before, after int
	// local is when it does so in ruleYear, by the clock before the change, as the seconds of
	// the same time in UTC.
	local int64
}

// ruleYear is the year in which the rules of zones are compared. They change seldom, and the
// year is one that the zone data knows.
const ruleYear = 2026

// likeRules returns the zone that Windows knows and that goes by the rules of a VTIMEZONE.
// Outlook writes such a VTIMEZONE under a name of its own if the user has chosen the rules, as
// "Customized Time Zone" or "tzone://Microsoft/Custom". Of several zones the first by its
// name in Windows is taken: their clocks show the same.
func likeRules(all []observance) (window.Zone, bool) {
	var key [2]observance
	if len(all) == 0 || len(all) > len(key) {
		return window.Zone{}, false
	}
	copy(key[:], slices.SortedFunc(slices.Values(all), func(a, b observance) int { return cmp.Compare(a.local, b.local) }))
	zone, known := zonesByRules()[key]
	return zone, known
}

// zonesByRules are the zones of Windows by their changes of the clock in ruleYear.
var zonesByRules = sync.OnceValue(func() map[[2]observance]window.Zone {
	zones := map[[2]observance]window.Zone{}
	for _, name := range slices.Sorted(maps.Keys(windowsZones)) {
		zone, known := windowsZone(name)
		changes := changesOf(zone.Location(nil))
		var key [2]observance
		if !known || len(changes) > len(key) {
			continue
		}
		copy(key[:], changes)
		if _, taken := zones[key]; !taken {
			zones[key] = zone
		}
	}
	return zones
})

// changesOf returns the changes of the clock of a location in ruleYear, or the offset of the
// whole year.
func changesOf(location *time.Location) (all []observance) {
	at := time.Date(ruleYear, 1, 1, 0, 0, 0, 0, location)
	for {
		_, before := at.Zone()
		_, next := at.ZoneBounds()
		if next.IsZero() || next.Year() > ruleYear {
			if all == nil {
				all = []observance{{before: before, after: before}}
			}
			return all
		}
		_, after := next.Zone()
		all = append(all, observance{before, after, next.Unix() + int64(before)})
		at = next
	}
}

// rulesOf reads the parts of a VTIMEZONE, but for those that have ended. It returns none if it
// cannot read one.
func rulesOf(parts []component) (all []observance) {
	for _, part := range parts {
		of := map[string]string{}
		for _, line := range part.properties {
			of[line.name] = line.value
		}
		if strings.Contains(strings.ToUpper(of["RRULE"]), "UNTIL=") {
			continue
		}
		o, err := observanceOf(of)
		if err != nil {
			return nil
		}
		all = append(all, o)
	}
	return slices.Compact(all)
}

// observanceOf reads the lines of a part of a VTIMEZONE.
func observanceOf(of map[string]string) (o observance, err error) {
	if o.before, err = parseOffset(of["TZOFFSETFROM"]); err != nil {
		return o, err
	}
	if o.after, err = parseOffset(of["TZOFFSETTO"]); err != nil {
		return o, err
	}
	if of["RRULE"] != "" && o.before != o.after {
		o.local, err = ruleIn(ruleYear, of["DTSTART"], of["RRULE"])
	}
	return o, err
}

// parseOffset reads an offset from UTC, such as +0530 (RFC 5545 3.3.14), and returns its
// seconds.
func parseOffset(text string) (int, error) {
	at, err := time.Parse("-0700", text)
	if err != nil {
		at, err = time.Parse("-070000", text)
	}
	_, offset := at.Zone()
	return offset, err
}

// changeRule is a rule of a VTIMEZONE, such as FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10.
var changeRule = text.Pattern(`^(?:FREQ=YEARLY;|INTERVAL=1;|BYMONTH=(\d{1,2});|BYDAY=(-1|[1-4])([A-Z]{2});|WKST=[A-Z]{2};)+$`)

// ruleIn returns when a rule happens in a year, at the time of day of its start, as
// observance.local has it.
func ruleIn(year int, start, rule string) (int64, error) {
	_, clock, _ := strings.Cut(start, "T")
	at, err := time.Parse("150405", clock)
	if err != nil {
		return 0, err
	}
	match := changeRule().FindStringSubmatch(strings.ToUpper(rule) + ";")
	if match == nil {
		return 0, errRule
	}
	month, _ := strconv.Atoi(match[1]) // 0 for none.
	week, _ := strconv.Atoi(match[2])
	weekday, known := weekdays[match[3]]
	if month < 1 || month > 12 || !known {
		return 0, errRule
	}
	first := time.Date(year, time.Month(month), 1, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	if week < 0 { // The last week begins seven days before the next month.
		first, week = first.AddDate(0, 1, -7), 1
	}
	return first.AddDate(0, 0, (int(weekday-first.Weekday())+7)%7+7*(week-1)).Unix(), nil
}

var errRule = errors.New("is not a rule that Outlook writes")

// windowsZones maps the names of Windows to those of IANA, as the table windowsZones of the
// Unicode CLDR does for the territory "001", the world. It is that of Go 1.26, whose
// time/zoneinfo_abbrs_windows.go is made from CLDR's windowsZones.xml.
var windowsZones = map[string]string{
	"Utc":                             "Etc/UTC", // As in tzone://Microsoft/Utc.
	"AUS Central Standard Time":       "Australia/Darwin",
	"AUS Eastern Standard Time":       "Australia/Sydney",
	"Afghanistan Standard Time":       "Asia/Kabul",
	"Alaskan Standard Time":           "America/Anchorage",
	"Aleutian Standard Time":          "America/Adak",
	"Altai Standard Time":             "Asia/Barnaul",
	"Arab Standard Time":              "Asia/Riyadh",
	"Arabian Standard Time":           "Asia/Dubai",
	"Arabic Standard Time":            "Asia/Baghdad",
	"Argentina Standard Time":         "America/Buenos_Aires",
	"Astrakhan Standard Time":         "Europe/Astrakhan",
	"Atlantic Standard Time":          "America/Halifax",
	"Aus Central W. Standard Time":    "Australia/Eucla",
	"Azerbaijan Standard Time":        "Asia/Baku",
	"Azores Standard Time":            "Atlantic/Azores",
	"Bahia Standard Time":             "America/Bahia",
	"Bangladesh Standard Time":        "Asia/Dhaka",
	"Belarus Standard Time":           "Europe/Minsk",
	"Bougainville Standard Time":      "Pacific/Bougainville",
	"Canada Central Standard Time":    "America/Regina",
	"Cape Verde Standard Time":        "Atlantic/Cape_Verde",
	"Caucasus Standard Time":          "Asia/Yerevan",
	"Cen. Australia Standard Time":    "Australia/Adelaide",
	"Central America Standard Time":   "America/Guatemala",
	"Central Asia Standard Time":      "Asia/Bishkek",
	"Central Brazilian Standard Time": "America/Cuiaba",
	"Central Europe Standard Time":    "Europe/Budapest",
	"Central European Standard Time":  "Europe/Warsaw",
	"Central Pacific Standard Time":   "Pacific/Guadalcanal",
	"Central Standard Time":           "America/Chicago",
	"Central Standard Time (Mexico)":  "America/Mexico_City",
	"Chatham Islands Standard Time":   "Pacific/Chatham",
	"China Standard Time":             "Asia/Shanghai",
	"Cuba Standard Time":              "America/Havana",
	"Dateline Standard Time":          "Etc/GMT+12",
	"E. Africa Standard Time":         "Africa/Nairobi",
	"E. Australia Standard Time":      "Australia/Brisbane",
	"E. Europe Standard Time":         "Europe/Chisinau",
	"E. South America Standard Time":  "America/Sao_Paulo",
	"Easter Island Standard Time":     "Pacific/Easter",
	"Eastern Standard Time":           "America/New_York",
	"Eastern Standard Time (Mexico)":  "America/Cancun",
	"Egypt Standard Time":             "Africa/Cairo",
	"Ekaterinburg Standard Time":      "Asia/Yekaterinburg",
	"FLE Standard Time":               "Europe/Kiev",
	"Fiji Standard Time":              "Pacific/Fiji",
	"GMT Standard Time":               "Europe/London",
	"GTB Standard Time":               "Europe/Bucharest",
	"Georgian Standard Time":          "Asia/Tbilisi",
	"Greenland Standard Time":         "America/Godthab",
	"Greenwich Standard Time":         "Atlantic/Reykjavik",
	"Haiti Standard Time":             "America/Port-au-Prince",
	"Hawaiian Standard Time":          "Pacific/Honolulu",
	"India Standard Time":             "Asia/Calcutta",
	"Iran Standard Time":              "Asia/Tehran",
	"Israel Standard Time":            "Asia/Jerusalem",
	"Jordan Standard Time":            "Asia/Amman",
	"Kaliningrad Standard Time":       "Europe/Kaliningrad",
	"Korea Standard Time":             "Asia/Seoul",
	"Libya Standard Time":             "Africa/Tripoli",
	"Line Islands Standard Time":      "Pacific/Kiritimati",
	"Lord Howe Standard Time":         "Australia/Lord_Howe",
	"Magadan Standard Time":           "Asia/Magadan",
	"Magallanes Standard Time":        "America/Punta_Arenas",
	"Marquesas Standard Time":         "Pacific/Marquesas",
	"Mauritius Standard Time":         "Indian/Mauritius",
	"Middle East Standard Time":       "Asia/Beirut",
	"Montevideo Standard Time":        "America/Montevideo",
	"Morocco Standard Time":           "Africa/Casablanca",
	"Mountain Standard Time":          "America/Denver",
	"Mountain Standard Time (Mexico)": "America/Mazatlan",
	"Myanmar Standard Time":           "Asia/Rangoon",
	"N. Central Asia Standard Time":   "Asia/Novosibirsk",
	"Namibia Standard Time":           "Africa/Windhoek",
	"Nepal Standard Time":             "Asia/Katmandu",
	"New Zealand Standard Time":       "Pacific/Auckland",
	"Newfoundland Standard Time":      "America/St_Johns",
	"Norfolk Standard Time":           "Pacific/Norfolk",
	"North Asia East Standard Time":   "Asia/Irkutsk",
	"North Asia Standard Time":        "Asia/Krasnoyarsk",
	"North Korea Standard Time":       "Asia/Pyongyang",
	"Omsk Standard Time":              "Asia/Omsk",
	"Pacific SA Standard Time":        "America/Santiago",
	"Pacific Standard Time":           "America/Los_Angeles",
	"Pacific Standard Time (Mexico)":  "America/Tijuana",
	"Pakistan Standard Time":          "Asia/Karachi",
	"Paraguay Standard Time":          "America/Asuncion",
	"Qyzylorda Standard Time":         "Asia/Qyzylorda",
	"Romance Standard Time":           "Europe/Paris",
	"Russia Time Zone 10":             "Asia/Srednekolymsk",
	"Russia Time Zone 11":             "Asia/Kamchatka",
	"Russia Time Zone 3":              "Europe/Samara",
	"Russian Standard Time":           "Europe/Moscow",
	"SA Eastern Standard Time":        "America/Cayenne",
	"SA Pacific Standard Time":        "America/Bogota",
	"SA Western Standard Time":        "America/La_Paz",
	"SE Asia Standard Time":           "Asia/Bangkok",
	"Saint Pierre Standard Time":      "America/Miquelon",
	"Sakhalin Standard Time":          "Asia/Sakhalin",
	"Samoa Standard Time":             "Pacific/Apia",
	"Sao Tome Standard Time":          "Africa/Sao_Tome",
	"Saratov Standard Time":           "Europe/Saratov",
	"Singapore Standard Time":         "Asia/Singapore",
	"South Africa Standard Time":      "Africa/Johannesburg",
	"South Sudan Standard Time":       "Africa/Juba",
	"Sri Lanka Standard Time":         "Asia/Colombo",
	"Sudan Standard Time":             "Africa/Khartoum",
	"Syria Standard Time":             "Asia/Damascus",
	"Taipei Standard Time":            "Asia/Taipei",
	"Tasmania Standard Time":          "Australia/Hobart",
	"Tocantins Standard Time":         "America/Araguaina",
	"Tokyo Standard Time":             "Asia/Tokyo",
	"Tomsk Standard Time":             "Asia/Tomsk",
	"Tonga Standard Time":             "Pacific/Tongatapu",
	"Transbaikal Standard Time":       "Asia/Chita",
	"Turkey Standard Time":            "Europe/Istanbul",
	"Turks And Caicos Standard Time":  "America/Grand_Turk",
	"US Eastern Standard Time":        "America/Indianapolis",
	"US Mountain Standard Time":       "America/Phoenix",
	"UTC":                             "Etc/UTC",
	"UTC+12":                          "Etc/GMT-12",
	"UTC+13":                          "Etc/GMT-13",
	"UTC-02":                          "Etc/GMT+2",
	"UTC-08":                          "Etc/GMT+8",
	"UTC-09":                          "Etc/GMT+9",
	"UTC-11":                          "Etc/GMT+11",
	"Ulaanbaatar Standard Time":       "Asia/Ulaanbaatar",
	"Venezuela Standard Time":         "America/Caracas",
	"Vladivostok Standard Time":       "Asia/Vladivostok",
	"Volgograd Standard Time":         "Europe/Volgograd",
	"W. Australia Standard Time":      "Australia/Perth",
	"W. Central Africa Standard Time": "Africa/Lagos",
	"W. Europe Standard Time":         "Europe/Berlin",
	"W. Mongolia Standard Time":       "Asia/Hovd",
	"West Asia Standard Time":         "Asia/Tashkent",
	"West Bank Standard Time":         "Asia/Hebron",
	"West Pacific Standard Time":      "Pacific/Port_Moresby",
	"Yakutsk Standard Time":           "Asia/Yakutsk",
	"Yukon Standard Time":             "America/Whitehorse",
}
