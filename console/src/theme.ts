import { createTheme, defaultVariantColorsResolver, type MantineColorsTuple } from "@mantine/core";

/** The colour of buttons: nearly black or nearly white. Other colours are used for states only. */
const ink: MantineColorsTuple = [
  "#f5f6f8",
  "#e6e9ee",
  "#d3d8e0",
  "#b3bbc8",
  "#8c96a6",
  "#667182",
  "#474f5d",
  "#2c323d",
  "#1c212a",
  "#12161d",
];

/** The dark scheme's greys, from text to background, with the same bluish tint as the other colours. */
const dark: MantineColorsTuple = [
  "#e9ecf2",
  "#c3cad6",
  "#9aa5b6",
  "#6b7689",
  "#3b4454",
  "#2a3140",
  "#1c212c",
  "#151922",
  "#0f131a",
  "#0a0d12",
];

export const theme = createTheme({
  colors: { ink, dark },
  components: {
    Modal: {
      styles: {
        content: { background: "var(--c-card)" },
        header: { background: "var(--c-card)" },
        title: { fontSize: 17, fontWeight: 650 },
      },
    },
  },
  primaryColor: "ink",
  primaryShade: { light: 8, dark: 1 },
  // The text of a filled button has the page's background colour, in both schemes.
  variantColorResolver: (input) =>
    input.variant === "filled" && (input.color ?? "ink") === "ink"
      ? {
          background: "var(--c-text)",
          hover: "color-mix(in srgb, var(--c-text) 86%, var(--c-canvas))",
          color: "var(--c-card)",
          border: "1px solid transparent",
        }
      : defaultVariantColorsResolver(input),
  defaultRadius: "md",
  fontFamily: "var(--font)",
  fontFamilyMonospace: "var(--mono)",
  fontSizes: { xs: "12px", sm: "13.5px", md: "14.5px", lg: "16px", xl: "20px" },
  headings: { fontFamily: "var(--font)", fontWeight: "650" },
  cursorType: "pointer",
  respectReducedMotion: true,
});
