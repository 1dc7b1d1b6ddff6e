import { describe, expect, test } from "vitest";
import { readNickname, readTimeFields } from "./fields.ts";

const first = () => 0;
const read = (text: string, choose: (field: string, n: number) => number = first) =>
  readTimeFields(text.split(" "), choose);

describe("accepted fields, in Carillon's dialect", () => {
  test.each([
    ["*/5 * * * *", "*/5 * * * *"],
    ["09,39 * * * *", "09,39 * * * *"],
    ["5-55/10 0-23/2 1,15 jan-mar MON-fri", "5-55/10 0-23/2 1,15 jan-mar MON-fri"],
    ["0 0 * * 0-7", "0 0 * * 0-7"],
    // A step longer than the field's range matches only the first value of the range.
    ["*/60 */24 * * *", "0 0 * * *"],
    ["10-20/90 * * * *", "10 * * * *"],
    ["0 0 */31 * *", "0 0 1 * *"],
    ["0 0 * */12 */7", "0 0 * 1 0"],
  ])("%s", (given, expression) => {
    expect(read(given).expression).toBe(expression);
  });

  test("a leading star of minute or hour is kept, because it decides the behaviour at a change of clocks", () => {
    expect(read("*/5 3 * * *").wildcard).toBe(true);
    expect(read("0 */2 * * *").wildcard).toBe(true);
    expect(read("30 0-23 * * *").wildcard).toBe(false);
    expect(readNickname("@hourly").wildcard).toBe(true);
    expect(readNickname("@daily")).toEqual({ expression: "@daily", wildcard: false, chosen: [] });
  });

  test("~ is chosen within its bounds, and noted", () => {
    expect(read("10~20 ~ * * *", (_, n) => n - 1)).toMatchObject({
      expression: "20 23 * * *",
      chosen: ["minute 10~20 is 20", "hour ~ is 23"],
    });
    expect(read("~5,50~ 0 * * ~").expression).toBe("0,50 0 * * 0");
  });
});

describe("refused fields, with the reason", () => {
  test.each([
    ["5/10 * * * *", /step after a single value/],
    ["50-10 * * * *", /runs backwards/],
    ["0 0 * * fri-sun", /runs backwards/],
    ["20~10 * * * *", /runs backwards/],
    ["0~59/5 * * * *", /random range/],
    ["60 * * * *", /60; 0 to 59/],
    ["0 24 * * *", /24; 0 to 23/],
    ["0 0 0 * *", /0; 1 to 31/],
    ["0 0 * * 8", /8; 0 to 7/],
    ["0 0 L * *", /cron does not know/],
    ["0 0 15W * *", /cron does not know/],
    ["0 0 * * 5#2", /cron does not know/],
    ["0 0 ? * *", /cron does not know/],
    ["*/0 * * * *", /step "0"/],
    ["*/x * * * *", /step "x"/],
    ["1, * * * *", /incomplete/],
    ["/5 * * * *", /incomplete/],
    ["1/2/3 * * * *", /too many/],
    ["0 0 * january *", /january/],
    ["mon * * * *", /mon/],
    ["0 0 */31 * 1", /step longer than the field/],
    ["0 0 1 * */7", /step longer than the field/],
  ])("%s", (given, message) => {
    expect(() => read(given)).toThrow(
      expect.objectContaining({ code: "CRONTAB_INVALID", message: expect.stringMatching(message) }),
    );
  });

  test("the hint for a backward range is the range that was probably meant", () => {
    expect(() => read("0 0 * * fri-sun")).toThrow(
      expect.objectContaining({ hint: "If it is to wrap around, write 5-7." }),
    );
    expect(() => read("50-10 * * * *")).toThrow(
      expect.objectContaining({ hint: "If it is to wrap around, write 50-59,0-10." }),
    );
  });

  test("@reboot and unknown names are refused", () => {
    expect(() => readNickname("@reboot")).toThrow(/start of a machine/);
    expect(() => readNickname("@fortnightly")).toThrow(/not a name that cron knows/);
  });
});
