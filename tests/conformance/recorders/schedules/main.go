package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"github.com/robfig/cron/v3"
	"os"
	"time"
)

type q struct {
	S string
	Z string
	T int64
}

func main() {
	sc := bufio.NewScanner(os.Stdin)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var x q
		json.Unmarshal(sc.Bytes(), &x)
		s := x.S
		if x.Z != "" {
			s = "TZ=" + x.Z + " " + s
		}
		out := map[string]any{"schedule": x.S, "zone": x.Z, "after": x.T}
		func() {
			defer func() {
				if r := recover(); r != nil {
					out["error"] = fmt.Sprint("panic ", r)
				}
			}()
			sd, err := cron.ParseStandard(s)
			if err != nil {
				out["error"] = err.Error()
				return
			}
			t := time.Unix(x.T, 0).UTC()
			ns := []any{}
			for i := 0; i < 4; i++ {
				t = sd.Next(t)
				if t.IsZero() {
					ns = append(ns, nil)
					break
				}
				ns = append(ns, t.Unix())
			}
			out["next"] = ns
		}()
		b, _ := json.Marshal(out)
		fmt.Println(string(b))
	}
}
