-- Student's t: the value that is exceeded in absolute size with probability 0.05.
--
-- Between two rows the one with fewer degrees of freedom counts, which makes an interval a little too wide and never
-- too narrow: `asof join int_t_quantiles as t on df >= t.degrees_of_freedom`. The last row is the normal quantile.
--
-- grain: degrees of freedom
-- key: degrees_of_freedom
-- columns:
--   degrees_of_freedom  number, from 1 to infinity
--   t_quantile          number, 1.960 to 12.706
-- source: Student (1908); values as in NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2
select
    published.degrees_of_freedom,
    cast(published.t_quantile as double) as t_quantile
from (
    values
    (1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (4.0, 2.776), (5.0, 2.571),
    (6.0, 2.447), (7.0, 2.365), (8.0, 2.306), (9.0, 2.262), (10.0, 2.228),
    (11.0, 2.201), (12.0, 2.179), (13.0, 2.160), (14.0, 2.145), (15.0, 2.131),
    (16.0, 2.120), (17.0, 2.110), (18.0, 2.101), (19.0, 2.093), (20.0, 2.086),
    (21.0, 2.080), (22.0, 2.074), (23.0, 2.069), (24.0, 2.064), (25.0, 2.060),
    (26.0, 2.056), (27.0, 2.052), (28.0, 2.048), (29.0, 2.045), (30.0, 2.042),
    (40.0, 2.021), (60.0, 2.000), (120.0, 1.980), (cast('infinity' as double), 1.960)
) as published (degrees_of_freedom, t_quantile)
