package window

import (
	"testing"
	"time"
)

// The rows are worked out by hand from the changes that the time zone database
// records.
func TestStart(t *testing.T) {
	t.Parallel()
	const never = ""
	for _, row := range []struct{ name, zone, date, start, want string }{
		{"ordinary day", "Europe/Stockholm", "2026-06-05", "01:00", "2026-06-04T23:00:00Z"},
		{"no zone", "UTC", "2026-06-05", "01:00", "2026-06-05T01:00:00Z"},
		{"zone that never changes", "Asia/Kolkata", "2026-06-05", "01:00", "2026-06-04T19:30:00Z"},
		{"far east", "Pacific/Kiritimati", "2026-06-05", "00:00", "2026-06-04T10:00:00Z"},
		{"far west", "Pacific/Pago_Pago", "2026-06-05", "23:59", "2026-06-06T10:59:00Z"},

		{"just before a gap", "Europe/Stockholm", "2026-03-29", "01:59", "2026-03-29T00:59:00Z"},
		{"at the start of a gap", "Europe/Stockholm", "2026-03-29", "02:00", "2026-03-29T01:00:00Z"},
		{"in a gap", "Europe/Stockholm", "2026-03-29", "02:30", "2026-03-29T01:00:00Z"},
		{"at the end of a gap", "Europe/Stockholm", "2026-03-29", "03:00", "2026-03-29T01:00:00Z"},
		{"after a gap", "Europe/Stockholm", "2026-03-29", "03:01", "2026-03-29T01:01:00Z"},
		{"in a gap west of Greenwich", "America/New_York", "2026-03-08", "02:30", "2026-03-08T07:00:00Z"},
		{"in a gap of a half-hour zone", "America/St_Johns", "2026-03-08", "02:30", "2026-03-08T05:30:00Z"},
		{"in a gap of a quarter-hour zone", "Pacific/Chatham", "2026-09-27", "03:00", "2026-09-26T14:00:00Z"},
		{"in a gap of half an hour", "Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:30:00Z"},
		{"in a gap of two hours", "Antarctica/Troll", "2026-03-29", "02:59", "2026-03-29T01:00:00Z"},
		{"in a gap where summer is the standard time", "Europe/Dublin", "2026-03-29", "01:30", "2026-03-29T01:00:00Z"},
		{"in a gap after Ramadan", "Africa/Casablanca", "2026-03-22", "02:30", "2026-03-22T02:00:00Z"},
		{"in a gap on a Friday", "Asia/Jerusalem", "2026-03-27", "02:10", "2026-03-27T00:00:00Z"},
		{"in a gap on a Saturday", "Asia/Gaza", "2026-03-28", "02:10", "2026-03-28T00:00:00Z"},

		{"in a gap at midnight", "America/Santiago", "2026-09-06", "00:00", "2026-09-06T04:00:00Z"},
		{"in a gap after midnight", "America/Santiago", "2026-09-06", "00:30", "2026-09-06T04:00:00Z"},
		{"midnight gap in Cairo", "Africa/Cairo", "2026-04-24", "00:00", "2026-04-23T22:00:00Z"},
		{"midnight gap in Beirut", "Asia/Beirut", "2026-03-29", "00:59", "2026-03-28T22:00:00Z"},
		{"midnight gap in Havana", "America/Havana", "2026-03-08", "00:00", "2026-03-08T05:00:00Z"},
		{"midnight gap in the Azores", "Atlantic/Azores", "2026-03-29", "00:15", "2026-03-29T01:00:00Z"},
		{"gap before midnight", "Pacific/Easter", "2026-09-05", "22:30", "2026-09-06T04:00:00Z"},
		{"gap that ends on the next date", "America/Nuuk", "2026-03-28", "23:30", "2026-03-29T01:00:00Z"},
		{"gap of half an hour up to midnight", "Asia/Pyongyang", "2018-05-04", "23:45", "2018-05-04T15:00:00Z"},

		{"twice", "Europe/Stockholm", "2026-10-25", "02:30", "2026-10-25T00:30:00Z"},
		{"end of what happens twice", "Europe/Stockholm", "2026-10-25", "03:00", "2026-10-25T02:00:00Z"},
		{"twice west of Greenwich", "America/New_York", "2026-11-01", "01:30", "2026-11-01T05:30:00Z"},
		{"twice by half an hour", "Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45:00Z"},
		{"twice by a quarter-hour zone", "Pacific/Chatham", "2026-04-05", "03:00", "2026-04-04T13:15:00Z"},
		{"twice by two hours", "Antarctica/Troll", "2026-10-25", "01:00", "2026-10-24T23:00:00Z"},
		{"midnight twice", "America/Havana", "2026-11-01", "00:00", "2026-11-01T04:00:00Z"},
		{"midnight twice but for its first instant", "America/Santiago", "2026-04-05", "00:00", "2026-04-05T04:00:00Z"},
		{"the last hour of a date twice", "America/Santiago", "2026-04-04", "23:30", "2026-04-05T02:30:00Z"},
		{"midnight that the clock turns back from", "Africa/Cairo", "2026-10-30", "00:00", "2026-10-29T22:00:00Z"},
		{"odd half hour back", "America/Caracas", "2007-12-09", "02:45", "2007-12-09T06:45:00Z"},

		{"date that does not exist", "Pacific/Apia", "2011-12-30", "12:00", never},
		{"its first minute", "Pacific/Apia", "2011-12-30", "00:00", never},
		{"its last minute", "Pacific/Apia", "2011-12-30", "23:59", never},
		{"the date before", "Pacific/Apia", "2011-12-29", "12:00", "2011-12-29T22:00:00Z"},
		{"the date after", "Pacific/Apia", "2011-12-31", "00:00", "2011-12-30T10:00:00Z"},
		{"date across which the date line moved", "Pacific/Kwajalein", "1993-08-21", "12:00", never},

		{"last day of a leap year", "America/New_York", "2028-12-31", "23:00", "2029-01-01T04:00:00Z"},
		{"last day of a leap year in summer", "Australia/Sydney", "2028-12-31", "12:00", "2028-12-31T01:00:00Z"},
		{"far ahead", "Europe/Stockholm", "2099-07-01", "12:00", "2099-07-01T10:00:00Z"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			date, err := time.Parse(time.DateOnly, row.date)
			if err != nil {
				t.Fatal(err)
			}
			start, err := ParseTimeOfDay(row.start)
			if err != nil {
				t.Fatal(err)
			}
			at, ok := NewClock(mustLocation(t, row.zone)).Start(date.Add(time.Duration(start.minutes) * time.Minute))
			got := never
			if ok {
				got = at.Format(time.RFC3339)
			}
			if got != row.want {
				t.Fatalf("%s %s in %s starts at %q; want %q", row.date, row.start, row.zone, got, row.want)
			}
		})
	}
}

func TestEveryZoneReachesEveryDate(t *testing.T) {
	t.Parallel()
	const noon = 12 * time.Hour
	for _, name := range zoneNames() {
		location := mustLocation(t, name)
		for _, date := range []string{"1901-01-01", "1970-01-01", "2000-02-29", "2026-11-21", "2028-12-31", "2199-12-31"} {
			midnight, err := time.Parse(time.DateOnly, date)
			if err != nil {
				t.Fatal(err)
			}
			at, ok := NewClock(location).Start(midnight.Add(noon))
			if clock := at.In(location).Format("2006-01-02 15:04"); !ok || clock != date+" 12:00" {
				t.Errorf("noon of %s in %s: %s, %v", date, name, clock, ok)
			}
		}
	}
}
