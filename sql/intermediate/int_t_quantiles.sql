-- Student's t, and what follows from it, by degrees of freedom.
--
-- Between two rows the one with fewer degrees of freedom counts, which makes an interval a little too wide and never
-- too narrow: `asof join int_t_quantiles as t on df >= t.degrees_of_freedom`. The last row is the normal one.
--
-- grain: degrees of freedom
-- key: degrees_of_freedom
-- columns:
--   degrees_of_freedom  number, from 1 to infinity
--   t_quantile          number, 1.960 to 12.706; exceeded in absolute size with probability 0.05
--   detection_factor    number, 2.802 to 14.083; standard errors that a true mean must have for a 95 % t interval to
--       leave out 0 with a chance of 80 %
-- formula: detection_factor = t(0.975) + t(0.8). The chance is 80 % from 4 degrees of freedom on, and 77 % with 2, 73 %
--     with 1.
-- source: Student (1908); values as in NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2; Bloom (1995),
--     Evaluation Review 19, 547-556, for detection_factor
select
    published.degrees_of_freedom,
    cast(published.t_quantile as double) as t_quantile,
    cast(published.detection_factor as double) as detection_factor
from (
    values
    (1.0, 12.706, 14.083), (2.0, 4.303, 5.363), (3.0, 3.182, 4.161), (4.0, 2.776, 3.717), (5.0, 2.571, 3.490),
    (6.0, 2.447, 3.353), (7.0, 2.365, 3.261), (8.0, 2.306, 3.195), (9.0, 2.262, 3.146), (10.0, 2.228, 3.107),
    (11.0, 2.201, 3.077), (12.0, 2.179, 3.051), (13.0, 2.160, 3.031), (14.0, 2.145, 3.013),
    (15.0, 2.131, 2.998), (16.0, 2.120, 2.985), (17.0, 2.110, 2.973), (18.0, 2.101, 2.963),
    (19.0, 2.093, 2.954), (20.0, 2.086, 2.946), (21.0, 2.080, 2.939), (22.0, 2.074, 2.932),
    (23.0, 2.069, 2.926), (24.0, 2.064, 2.921), (25.0, 2.060, 2.916), (26.0, 2.056, 2.911),
    (27.0, 2.052, 2.907), (28.0, 2.048, 2.903), (29.0, 2.045, 2.899), (30.0, 2.042, 2.896),
    (40.0, 2.021, 2.872), (60.0, 2.000, 2.848), (120.0, 1.980, 2.825),
    (cast('infinity' as double), 1.960, 2.802)
) as published (degrees_of_freedom, t_quantile, detection_factor)
